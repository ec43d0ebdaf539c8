//! Attaches programs one by one; what the kernel refuses is written down, not fatal.

use anyhow::{Context, Result};
use aya::{
    Btf, Ebpf,
    programs::{BtfTracePoint, FEntry, FExit, KProbe},
};

use crate::{
    kernel::hooks::Plan,
    stream::header::{Hook, Via},
};

/// Carries out plans; the result has a row per plan.
pub fn attach(ebpf: &mut Ebpf, btf: &Btf, plans: &[Plan]) -> Vec<Hook> {
    plans
        .iter()
        .map(|plan| {
            let mut hook = Hook {
                name: plan.name.to_owned(),
                via: plan.via,
                target: plan.target.clone(),
                why: plan.why.clone(),
                without: plan.without.to_owned(),
            };
            if plan.via != Via::None
                && let Err(error) = attach_one(ebpf, btf, plan)
            {
                hook.via = Via::None;
                hook.target = String::new();
                hook.why = format!("{}: {}", plan.target, root_cause(&error));
            }
            hook
        })
        .collect()
}

/// The innermost reason in one line: verifier logs run to pages.
fn root_cause(error: &anyhow::Error) -> String {
    let cause = error.root_cause().to_string();
    cause.lines().next().unwrap_or_default().to_owned()
}

fn attach_one(ebpf: &mut Ebpf, btf: &Btf, plan: &Plan) -> Result<()> {
    let program = ebpf.program_mut(plan.program).with_context(|| format!("the eBPF object has no program {}", plan.program))?;
    match plan.via {
        Via::Fentry => {
            let program: &mut FEntry = program.try_into()?;
            program.load(&plan.target, btf)?;
            program.attach()?;
        }
        Via::Fexit => {
            let program: &mut FExit = program.try_into()?;
            program.load(&plan.target, btf)?;
            program.attach()?;
        }
        Via::TpBtf => {
            let program: &mut BtfTracePoint = program.try_into()?;
            program.load(&plan.target, btf)?;
            program.attach()?;
        }
        Via::Kprobe => {
            let program: &mut KProbe = program.try_into()?;
            program.load()?;
            program.attach(&plan.target, 0)?;
        }
        Via::Run | Via::None => {}
    }
    Ok(())
}

/// Whether functions can be hooked at all: decided by really attaching, since some kernels load such programs and then
/// refuse to attach them.
pub fn functions_hooked(hooks: &[Hook]) -> bool {
    hooks.iter().any(|hook| matches!(hook.via, Via::Fentry | Via::Fexit))
}
