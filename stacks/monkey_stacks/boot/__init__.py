"""How a machine of a cloud boots into an agent: its user data, and the code that it fetches."""

from monkey_stacks.boot.settings import BOOT_PATIENCE, Settings
from monkey_stacks.boot.userdata import MOST, user_data

__all__ = ["BOOT_PATIENCE", "MOST", "Settings", "user_data"]
