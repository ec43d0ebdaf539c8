//! Records as the programs wrote them, into events. A record of unknown kind or wrong length is an error: the object and
//! the binary would not belong together, and a guess would be a wrong number.

use anyhow::{Result, bail};
use observer_common::{CLOCK_UNKNOWN, Cold, Controller, FileName, Head, Kind, Range, Shrink};

use crate::stream::event::{Body, Clock, ControllerState, Event, FolioEvent, Home, Identity, LruvecState};

/// Decodes one record.
///
/// # Errors
/// Unknown kind or a length that does not fit it.
pub fn decode(bytes: &[u8]) -> Result<Event> {
    let head: Head = prefix(bytes)?;
    let Some(kind) = observer_common::kind(head.kind) else { bail!("record of unknown kind {}", head.kind) };
    let body = match kind {
        Kind::Mark | Kind::IncGen | Kind::Activate | Kind::Walk | Kind::SetRefs | Kind::LookAround => {
            Body::Folio(folio(kind, &exact::<Head>(bytes)?, None))
        }
        Kind::Add
        | Kind::Insert
        | Kind::Refault
        | Kind::Evict
        | Kind::Delete
        | Kind::CacheAdd
        | Kind::Census
        | Kind::Sweep
        | Kind::SwapRead => {
            let cold: Cold = exact(bytes)?;
            Body::Folio(folio(kind, &cold.head, Some(&cold)))
        }
        Kind::ShrinkEnter | Kind::ShrinkExit | Kind::Age => {
            let shrink: Shrink = exact(bytes)?;
            Body::Lruvec {
                kind,
                lruvec: head.folio,
                state: LruvecState {
                    cgroup: shrink.cgroup,
                    node: shrink.node,
                    enabled: shrink.enabled != 0,
                    priority: shrink.priority,
                    max_seq: shrink.max_seq,
                    min_seq: shrink.min_seq,
                    nr_reclaimed: shrink.nr_reclaimed,
                    pages: shrink.pages,
                },
            }
        }
        Kind::Controller => {
            let record: Controller = exact(bytes)?;
            Body::Controller {
                lruvec: head.folio,
                state: Box::new(ControllerState {
                    avg_refaulted: record.avg_refaulted,
                    avg_total: record.avg_total,
                    refaulted: record.refaulted,
                    evicted: record.evicted,
                    protected: record.protected,
                }),
            }
        }
        Kind::FileName => {
            let record: FileName = exact(bytes)?;
            Body::FileName { dev: record.dev, ino: record.ino, name: path(&record) }
        }
        Kind::ReadRange | Kind::FaultRange | Kind::MapRange => {
            let record: Range = exact(bytes)?;
            Body::Range { kind, dev: record.dev, ino: record.ino, first: record.first, last: record.last }
        }
    };
    Ok(Event { ts: head.ts, cpu: head.cpu, body })
}

fn prefix<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Result<T> {
    match bytes.get(..size_of::<T>()) {
        Some(bytes) => Ok(bytemuck::pod_read_unaligned(bytes)),
        None => bail!("record of {} bytes, shorter than its kind", bytes.len()),
    }
}

fn exact<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Result<T> {
    // The ring rounds records up to 8 bytes; every record is a multiple of 8 already.
    if bytes.len() != size_of::<T>() {
        bail!("record of {} bytes where its kind has {}", bytes.len(), size_of::<T>());
    }
    prefix(bytes)
}

fn folio(kind: Kind, head: &Head, cold: Option<&Cold>) -> FolioEvent {
    FolioEvent {
        kind,
        folio: head.folio,
        flags: head.flags,
        clock: clock(head.clock),
        aux: head.aux,
        identity: cold.map(|cold| Identity { dev: cold.dev, ino: cold.ino, index: cold.index }),
        home: cold.map(|cold| Home { cgroup: cold.cgroup, memcg_id: cold.memcg_id, node: cold.node, order: cold.order }),
        shadow: cold.map_or(0, |cold| cold.arg),
    }
}

fn clock(packed: u32) -> Option<Clock> {
    if packed == CLOCK_UNKNOWN {
        return None;
    }
    let window = [(packed >> 4) as u8 & 15, packed as u8 & 15];
    Some(Clock { max_seq: packed >> 8, window })
}

/// The components of a path, outermost first; a leading "…/" where the kernel had more than fit.
fn path(record: &FileName) -> String {
    let parts = (record.parts as usize).min(record.name.len());
    let mut path = String::new();
    for part in record.name[..parts].iter().rev() {
        let end = part.iter().position(|byte| *byte == 0).unwrap_or(part.len());
        if !path.is_empty() || parts < record.name.len() {
            path.push('/');
        }
        path.push_str(&String::from_utf8_lossy(&part[..end]));
    }
    if parts == record.name.len() { format!("…/{path}") } else { path }
}

#[cfg(test)]
mod tests {
    use observer_common::pack_clock;

    use super::*;

    fn head(kind: Kind) -> Head {
        Head {
            ts: 7,
            folio: 0xffff_ea00_0000_1000,
            flags: 42,
            clock: pack_clock(0x0100_0005, 0x0100_0003, 0x0100_0002),
            kind: kind as u8,
            aux: 0,
            cpu: 3,
        }
    }

    #[test]
    fn a_hot_record_is_its_head_and_keeps_the_clock_s_low_bits() {
        let event = decode(bytemuck::bytes_of(&head(Kind::Mark))).unwrap();
        let Body::Folio(folio) = event.body else { panic!("{event:?}") };
        assert_eq!((event.ts, event.cpu, folio.kind, folio.flags), (7, 3, Kind::Mark, 42));
        assert_eq!(folio.clock, Some(Clock { max_seq: 5, window: [2, 3] }));
        assert_eq!(folio.identity, None);
    }

    #[test]
    fn an_unreachable_lruvec_is_no_clock() {
        let event = decode(bytemuck::bytes_of(&Head { clock: CLOCK_UNKNOWN, ..head(Kind::Mark) })).unwrap();
        assert!(matches!(event.body, Body::Folio(FolioEvent { clock: None, .. })));
    }

    #[test]
    fn wrong_lengths_and_unknown_kinds_are_refused() {
        let cold = bytemuck::bytes_of(&head(Kind::Add)).to_vec();
        assert!(decode(&cold).is_err(), "an insertion request is longer than a head");
        assert!(decode(&cold[..20]).is_err());
        assert!(decode(bytemuck::bytes_of(&Head { kind: 0, ..head(Kind::Mark) })).is_err());
        assert!(decode(bytemuck::bytes_of(&Head { kind: 200, ..head(Kind::Mark) })).is_err());
    }

    #[test]
    fn paths_read_outermost_first_and_show_that_they_were_cut() {
        let mut record = FileName { head: head(Kind::FileName), ino: 5, dev: 8, parts: 2, name: [[0; 48]; 6] };
        record.name[0][..3].copy_from_slice(b"log");
        record.name[1][..3].copy_from_slice(b"var");
        let name = |record: &FileName| match decode(bytemuck::bytes_of(record)).unwrap().body {
            Body::FileName { name, .. } => name,
            other => panic!("{other:?}"),
        };
        assert_eq!(name(&record), "/var/log");
        record.parts = 6;
        assert!(name(&record).starts_with("…/"));
        record.parts = 4_000_000;
        assert!(name(&record).starts_with("…/"));
    }
}
