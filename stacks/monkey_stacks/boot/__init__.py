"""How a machine of a cloud boots into an agent: its user data, and the code that it fetches."""

from monkey_stacks.boot.settings import BOOT_PATIENCE, MachineSettings
from monkey_stacks.boot.userdata import MAX_USERDATA_BYTES, write_user_data

__all__ = ["BOOT_PATIENCE", "MAX_USERDATA_BYTES", "MachineSettings", "write_user_data"]
