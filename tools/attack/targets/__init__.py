"""The targets by name, one a file."""

from tools.attack.finding import Target
from tools.attack.targets.builds import Builds
from tools.attack.targets.c_calls import CCalls
from tools.attack.targets.calls import Calls
from tools.attack.targets.command_lines import CommandLines
from tools.attack.targets.forms import Forms
from tools.attack.targets.kept import Kept
from tools.attack.targets.language import Language
from tools.attack.targets.manifests import Manifests
from tools.attack.targets.models import Models
from tools.attack.targets.names import Names
from tools.attack.targets.races import Races
from tools.attack.targets.schedules import Schedules
from tools.attack.targets.specs import Specs
from tools.attack.targets.texts import Texts
from tools.attack.targets.threads import Threads

TARGETS: dict[str, type[Target]] = {
    t.name: t
    for t in (
        Builds,
        Calls,
        CCalls,
        CommandLines,
        Forms,
        Kept,
        Language,
        Manifests,
        Models,
        Names,
        Races,
        Schedules,
        Specs,
        Texts,
        Threads,
    )
}
