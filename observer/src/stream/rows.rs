//! Events to cells and back.

use std::io;

use observer_common::Kind;

use super::columns::Columns;
use super::decode::{Cells, Invalid};
use super::event::{Body, Clock, ControllerState, Event, FolioEvent, Home, Identity, LruvecState};
use super::schema::{Col, MAX_NAME, RowKind, Shape, cut, shape};

/// Bit of `aux` in lruvec rows.
const AUX_ENABLED: u8 = 1;

/// Appends one event as a row.
///
/// An event whose kind does not belong to its body has no row and is refused.
pub(crate) fn append(columns: &mut Columns, event: &Event) -> io::Result<()> {
    let kind = row_kind(&event.body)?;
    columns.set(Col::Ts, event.ts.to_le_bytes());
    columns.set(Col::Kind, [kind.number()]);
    columns.set(Col::Cpu, event.cpu.to_le_bytes());
    let mut aux = 0;
    match &event.body {
        Body::Folio(folio) => {
            aux = folio.aux;
            append_folio(columns, folio);
        }
        Body::Lruvec { lruvec, state, .. } => {
            aux = if state.enabled { AUX_ENABLED } else { 0 };
            columns.set(Col::Lruvec, lruvec.to_le_bytes());
            append_lruvec(columns, state);
        }
        Body::Controller { lruvec, state } => {
            columns.set(Col::Lruvec, lruvec.to_le_bytes());
            let ControllerState { avg_refaulted, avg_total, refaulted, evicted, protected } = **state;
            let counters = [avg_refaulted, avg_total, refaulted, evicted, protected];
            columns.set_list(Col::Values, counters.into_iter().flatten().flatten());
        }
        Body::Range { dev, ino, first, last, .. } => {
            append_file(columns, *dev, *ino);
            columns.set(Col::Index, first.to_le_bytes());
            columns.set(Col::Value, last.to_le_bytes());
        }
        Body::FileName { dev, ino, name } => {
            append_file(columns, *dev, *ino);
            columns.set_text(Col::Name, cut(name, MAX_NAME));
        }
        Body::CgroupName { cgroup, name } => {
            set_known(columns, Col::Cgroup, *cgroup);
            columns.set_text(Col::Name, cut(name, MAX_NAME));
        }
        Body::Lost { cpu, count } => {
            columns.set(Col::Value, count.to_le_bytes());
            columns.set_list(Col::Values, [u64::from(*cpu)]);
        }
        Body::ClockSnapshot { boottime, realtime } => columns.set_list(Col::Values, [*boottime, *realtime]),
        Body::Counter { cgroup, name, value } => {
            set_known(columns, Col::Cgroup, *cgroup);
            columns.set(Col::Value, value.to_le_bytes());
            columns.set_text(Col::Name, cut(name, MAX_NAME));
        }
    }
    columns.set(Col::Aux, [aux]);
    columns.end_row();
    Ok(())
}

/// The row's kind; an error when the event contradicts itself.
fn row_kind(body: &Body) -> io::Result<RowKind> {
    let (kind, wanted) = match body {
        Body::Folio(folio) => (folio.kind, Shape::Folio),
        Body::Lruvec { kind, .. } => (*kind, Shape::Lruvec),
        Body::Range { kind, .. } => (*kind, Shape::Range),
        Body::Controller { .. } => (Kind::Controller, Shape::Controller),
        Body::FileName { .. } => (Kind::FileName, Shape::FileName),
        Body::CgroupName { .. } => return Ok(RowKind::CgroupName),
        Body::Lost { .. } => return Ok(RowKind::Lost),
        Body::ClockSnapshot { .. } => return Ok(RowKind::Clocks),
        Body::Counter { .. } => return Ok(RowKind::Counter),
    };
    if shape(kind) == wanted {
        Ok(RowKind::Hook(kind))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("an event of kind {kind:?} has another kind's body")))
    }
}

#[inline]
fn append_folio(columns: &mut Columns, folio: &FolioEvent) {
    columns.set(Col::Folio, folio.folio.to_le_bytes());
    columns.set(Col::Flags, folio.flags.to_le_bytes());
    if let Some(clock) = folio.clock {
        columns.set(Col::MaxSeq, u64::from(clock.max_seq).to_le_bytes());
        columns.set(Col::WindowAnon, [clock.window[0]]);
        columns.set(Col::WindowFile, [clock.window[1]]);
    }
    if let Some(identity) = folio.identity {
        append_file(columns, identity.dev, identity.ino);
        columns.set(Col::Index, identity.index.to_le_bytes());
    }
    if let Some(home) = folio.home {
        set_known(columns, Col::Cgroup, home.cgroup);
        if home.memcg_id != 0 {
            columns.set(Col::MemcgId, home.memcg_id.to_le_bytes());
        }
        columns.set(Col::Node, [home.node]);
        columns.set(Col::Order, [home.order]);
    }
    set_known(columns, Col::Shadow, folio.shadow);
}

fn append_lruvec(columns: &mut Columns, state: &LruvecState) {
    set_known(columns, Col::Cgroup, state.cgroup);
    columns.set(Col::Node, [state.node]);
    columns.set(Col::Priority, [state.priority]);
    columns.set(Col::MaxSeq, state.max_seq.to_le_bytes());
    columns.set(Col::MinSeqAnon, state.min_seq[0].to_le_bytes());
    columns.set(Col::MinSeqFile, state.min_seq[1].to_le_bytes());
    columns.set(Col::NrReclaimed, state.nr_reclaimed.to_le_bytes());
    columns.set_list(Col::Values, state.pages.into_iter().flatten().map(u64::from));
}

fn append_file(columns: &mut Columns, dev: u32, ino: u64) {
    if dev != 0 {
        columns.set(Col::Dev, dev.to_le_bytes());
    }
    columns.set(Col::Ino, ino.to_le_bytes());
}

/// Sets a u64 cell unless it is 0, which means unknown or none.
fn set_known(columns: &mut Columns, col: Col, value: u64) {
    if value != 0 {
        columns.set(col, value.to_le_bytes());
    }
}

/// Reads one row; `None` when its kind is newer than this version.
#[inline]
pub(crate) fn event(cells: &Cells, row: usize) -> Result<Option<Event>, Invalid> {
    let Some(kind) = RowKind::from_number(cells.required(Col::Kind, row)? as u8) else { return Ok(None) };
    let body = match kind {
        RowKind::Hook(kind) => hook(cells, row, kind)?,
        RowKind::CgroupName => Body::CgroupName { cgroup: known(cells, Col::Cgroup, row), name: cells.text(Col::Name, row)?.to_owned() },
        RowKind::Lost => {
            let [cpu] = list(cells, row)?;
            let cpu = u16::try_from(cpu).map_err(|_| Invalid::Cell(Col::Values))?;
            Body::Lost { cpu, count: cells.required(Col::Value, row)? }
        }
        RowKind::Clocks => {
            let [boottime, realtime] = list(cells, row)?;
            Body::ClockSnapshot { boottime, realtime }
        }
        RowKind::Counter => Body::Counter {
            cgroup: known(cells, Col::Cgroup, row),
            name: cells.text(Col::Name, row)?.to_owned(),
            value: cells.required(Col::Value, row)?,
        },
    };
    Ok(Some(Event { ts: cells.required(Col::Ts, row)?, cpu: cells.required(Col::Cpu, row)? as u16, body }))
}

#[inline]
fn hook(cells: &Cells, row: usize, kind: Kind) -> Result<Body, Invalid> {
    Ok(match shape(kind) {
        Shape::Folio => Body::Folio(folio(cells, row, kind)?),
        Shape::Lruvec => Body::Lruvec { kind, lruvec: cells.required(Col::Lruvec, row)?, state: lruvec(cells, row)? },
        Shape::Controller => Body::Controller { lruvec: cells.required(Col::Lruvec, row)?, state: Box::new(controller(cells, row)?) },
        Shape::Range => Body::Range {
            kind,
            dev: known(cells, Col::Dev, row) as u32,
            ino: cells.required(Col::Ino, row)?,
            first: cells.required(Col::Index, row)?,
            last: cells.required(Col::Value, row)?,
        },
        Shape::FileName => Body::FileName {
            dev: known(cells, Col::Dev, row) as u32,
            ino: cells.required(Col::Ino, row)?,
            name: cells.text(Col::Name, row)?.to_owned(),
        },
    })
}

#[inline]
fn folio(cells: &Cells, row: usize, kind: Kind) -> Result<FolioEvent, Invalid> {
    let clock = match cells.uint(Col::MaxSeq, row) {
        None => None,
        Some(max_seq) => Some(Clock {
            max_seq: u32::try_from(max_seq).map_err(|_| Invalid::Cell(Col::MaxSeq))?,
            window: [cells.required(Col::WindowAnon, row)? as u8, cells.required(Col::WindowFile, row)? as u8],
        }),
    };
    let identity = match cells.uint(Col::Index, row) {
        None => None,
        Some(index) => Some(Identity { dev: known(cells, Col::Dev, row) as u32, ino: cells.required(Col::Ino, row)?, index }),
    };
    let home = match cells.uint(Col::Node, row) {
        None => None,
        Some(node) => Some(Home {
            cgroup: known(cells, Col::Cgroup, row),
            memcg_id: known(cells, Col::MemcgId, row) as u16,
            node: node as u8,
            order: cells.required(Col::Order, row)? as u8,
        }),
    };
    Ok(FolioEvent {
        kind,
        folio: cells.required(Col::Folio, row)?,
        flags: cells.required(Col::Flags, row)?,
        clock,
        aux: cells.required(Col::Aux, row)? as u8,
        identity,
        home,
        shadow: known(cells, Col::Shadow, row),
    })
}

fn lruvec(cells: &Cells, row: usize) -> Result<LruvecState, Invalid> {
    let mut pages = [[0; 2]; 4];
    for (page, value) in pages.iter_mut().flatten().zip(list::<8>(cells, row)?) {
        *page = u32::try_from(value).map_err(|_| Invalid::Cell(Col::Values))?;
    }
    Ok(LruvecState {
        cgroup: known(cells, Col::Cgroup, row),
        node: cells.required(Col::Node, row)? as u8,
        enabled: cells.required(Col::Aux, row)? as u8 & AUX_ENABLED != 0,
        priority: cells.required(Col::Priority, row)? as u8,
        max_seq: cells.required(Col::MaxSeq, row)?,
        min_seq: [cells.required(Col::MinSeqAnon, row)?, cells.required(Col::MinSeqFile, row)?],
        nr_reclaimed: cells.required(Col::NrReclaimed, row)?,
        pages,
    })
}

fn controller(cells: &Cells, row: usize) -> Result<ControllerState, Invalid> {
    let mut state = ControllerState::default();
    let ControllerState { avg_refaulted, avg_total, refaulted, evicted, protected } = &mut state;
    let counters = [avg_refaulted, avg_total, refaulted, evicted, protected];
    for (counter, value) in counters.into_iter().flatten().flatten().zip(list::<40>(cells, row)?) {
        *counter = value;
    }
    Ok(state)
}

/// The cell, or 0 where null means unknown or none.
#[inline]
fn known(cells: &Cells, col: Col, row: usize) -> u64 {
    cells.uint(col, row).unwrap_or(0)
}

/// The row's list, of exactly so many entries.
fn list<const N: usize>(cells: &Cells, row: usize) -> Result<[u64; N], Invalid> {
    let bytes = cells.list(Col::Values, row)?;
    let (entries, rest) = bytes.as_chunks::<8>();
    let entries: &[[u8; 8]; N] = entries.try_into().map_err(|_| Invalid::Cell(Col::Values))?;
    if rest.is_empty() { Ok(entries.map(u64::from_le_bytes)) } else { Err(Invalid::Cell(Col::Values)) }
}
