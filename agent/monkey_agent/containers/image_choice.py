"""Which images an agent runs: any, by a runtime of its machine; or only the one in which it runs itself, as pods do."""

from __future__ import annotations

from dataclasses import dataclass

from monkey.spec.job.runtime_kind import RuntimeKind


@dataclass(frozen=True)
class ImageChoice:
    """How jobs get their images."""

    #: The runtime that runs them; None for the first that works here.
    runtime: RuntimeKind | None = None
    #: Digest of the image in which the agent runs, and its jobs with it; "" for jobs without an image alone. None: all
    #: jobs, and a runtime runs their images.
    own: str | None = None

    def is_taken(self, image: str | None) -> bool:
        """Return whether this agent runs jobs whose recipe has this image."""
        return self.own is None or self.own == (image or "")


#: Every image, by the first runtime that works.
ANY_IMAGE = ImageChoice()
