"""List of all steps of schedules; each file declares its own (`declaration.py`)."""

from __future__ import annotations

from opgen.schedule.carry import Carry as Carry
from opgen.schedule.compute_at import ComputeAt as ComputeAt
from opgen.schedule.declaration import PRIMITIVES as PRIMITIVES
from opgen.schedule.declaration import Step as Step
from opgen.schedule.distribute import Distribute as Distribute
from opgen.schedule.divide import Divide as Divide
from opgen.schedule.fill import Fill as Fill
from opgen.schedule.fission import Fission as Fission
from opgen.schedule.flatten import Flatten as Flatten
from opgen.schedule.fuse import Fuse as Fuse
from opgen.schedule.kinds import Bind as Bind
from opgen.schedule.kinds import Parallel as Parallel
from opgen.schedule.kinds import Unroll as Unroll
from opgen.schedule.kinds import Vectorize as Vectorize
from opgen.schedule.merge import Merge as Merge
from opgen.schedule.own import Own as Own
from opgen.schedule.pack import Pack as Pack
from opgen.schedule.pad import Pad as Pad
from opgen.schedule.pair import Pair as Pair
from opgen.schedule.partition import Partition as Partition
from opgen.schedule.permute import Permute as Permute
from opgen.schedule.pitch import Pitch as Pitch
from opgen.schedule.prefetch import Prefetch as Prefetch
from opgen.schedule.prefix import Prefix as Prefix
from opgen.schedule.recode import Recode as Recode
from opgen.schedule.regroup import Regroup as Regroup
from opgen.schedule.relay import Relay as Relay
from opgen.schedule.reorder import Reorder as Reorder
from opgen.schedule.rfactor import Rfactor as Rfactor
from opgen.schedule.ring import Ring as Ring
from opgen.schedule.separate import Separate as Separate
from opgen.schedule.share import Share as Share
from opgen.schedule.skew import Skew as Skew
from opgen.schedule.split import Split as Split
from opgen.schedule.stage import Stage as Stage
from opgen.schedule.stream import Stream as Stream
from opgen.schedule.tabulate import Tabulate as Tabulate
from opgen.schedule.tensorize import Tensorize as Tensorize
from opgen.schedule.tighten import Tighten as Tighten
from opgen.schedule.transpose import Transpose as Transpose
from opgen.schedule.version import Version as Version
from opgen.schedule.widen import Widen as Widen
