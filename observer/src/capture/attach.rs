//! Attaches programs one by one; what the kernel refuses is written down, not fatal.

use anyhow::{Context, Result};
use aya::{
    Btf, Ebpf,
    programs::{BtfTracePoint, FEntry, FExit, KProbe, ProgramError},
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

/// The innermost reason in one line. Verifier logs run to pages: what it objects to stands at their end.
fn root_cause(error: &anyhow::Error) -> String {
    let cause = error.root_cause().to_string();
    let cause = cause.lines().next().unwrap_or_default();
    let log = error.chain().find_map(|cause| match cause.downcast_ref::<ProgramError>()? {
        ProgramError::LoadError { verifier_log, .. } => Some(verifier_log.to_string()),
        _ => None,
    });
    match log.as_deref().and_then(objection) {
        Some(objection) => format!("{cause}: the verifier says: {objection}"),
        None => cause.to_owned(),
    }
}

/// The last line of a verifier's log before its statistics.
fn objection(log: &str) -> Option<&str> {
    const STATISTICS: [&str; 4] = ["verification time", "stack depth", "processed", "subprog"];
    let told = log.lines().map(str::trim).filter(|line| !line.is_empty());
    told.take_while(|line| !STATISTICS.iter().any(|word| line.starts_with(word))).last()
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

#[cfg(test)]
mod tests {
    use super::objection;

    #[test]
    fn the_verifier_s_objection_is_found() {
        let log = "0: R1=ctx() R10=fp0\n795: (79) r2 = *(u64 *)(r2 +0)\naccess beyond struct swap_io_ctx at off 24 size 8\n\
                   verification time 162383 usec\nstack depth max 0\nprocessed 2969 insns (limit 1000000)\n";
        assert_eq!(objection(log), Some("access beyond struct swap_io_ctx at off 24 size 8"));
        assert_eq!(objection(""), None);
        assert_eq!(objection("processed 0 insns\n"), None);
    }
}
