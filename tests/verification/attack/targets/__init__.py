"""The targets by name, one a file."""

from tests.verification.attack.finding import Target
from tests.verification.attack.targets.builds import Builds
from tests.verification.attack.targets.c_calls import CCalls
from tests.verification.attack.targets.calls import Calls
from tests.verification.attack.targets.command_lines import CommandLines
from tests.verification.attack.targets.forms import Forms
from tests.verification.attack.targets.kept import Kept
from tests.verification.attack.targets.language import Language
from tests.verification.attack.targets.manifests import Manifests
from tests.verification.attack.targets.models import Models
from tests.verification.attack.targets.names import Names
from tests.verification.attack.targets.races import Races
from tests.verification.attack.targets.schedules import Schedules
from tests.verification.attack.targets.specs import Specs
from tests.verification.attack.targets.texts import Texts
from tests.verification.attack.targets.threads import Threads

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
