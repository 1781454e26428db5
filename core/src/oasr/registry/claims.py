"""Who may be called by which bare name.

Two distributions that claim one name both lose it: whichever won would depend on the alphabet, and installing a
package would silently change what a configuration means. Both stay reachable as `name@distribution`. Core's own
components keep their names.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from oasr.plugin import ComponentSpec, Kind
from oasr.registry.records import CORE, PluginRecord, Status

Claim = tuple[ComponentSpec, PluginRecord]
Claims = dict[tuple[Kind, str], list[Claim]]


def collect(records: Iterable[PluginRecord]) -> Claims:
    """Every name and alias, with all who claim it."""
    claims: Claims = {}
    for record in records:
        for spec in record.specs:
            for word in dict.fromkeys((spec.name, *spec.aliases)):
                claims.setdefault((spec.kind, word), []).append((spec, record))
    return claims


def winners(claimants: Sequence[Claim]) -> list[Claim]:
    """Those a bare name may mean: core's own if it is among them, else everybody."""
    return [claim for claim in claimants if claim[1].distribution == CORE] or list(claimants)


def mark_conflicts(records: Sequence[PluginRecord]) -> list[PluginRecord]:
    """The records again, those in a dispute with status `conflict` and the names in question as the reason."""
    disputes: dict[PluginRecord, list[str]] = {}
    for (kind, word), claimants in collect(records).items():
        holders = winners(claimants)
        for _, record in claimants:
            rivals = sorted({other.distribution for _, other in claimants if other is not record})
            if not rivals or (len(holders) == 1 and holders[0][1] is record):
                continue
            disputes.setdefault(record, []).append(
                f'{kind} "{word}" is also provided by {", ".join(rivals)}: write {word}@{record.distribution}'
            )
    return [_disputed(record, disputes.get(record, [])) for record in records]


def _disputed(record: PluginRecord, reasons: list[str]) -> PluginRecord:
    if not reasons:
        return record
    reason = "; ".join([*reasons, record.reason] if record.reason else reasons)
    return replace(record, status=Status.CONFLICT, reason=reason)
