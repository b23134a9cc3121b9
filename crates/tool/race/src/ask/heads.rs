//! The heads of a race's requests.

use regatta_record::{Asked, Heads};
use regatta_script::Workload;

/// Returns the wanted heads, or varied ones; `None` if the workload has no choice of heads. The error,
/// if heads are wanted nevertheless, is a sentence.
pub(crate) fn chosen(wanted: Option<Heads>, workload: &Workload) -> Result<Option<Heads>, String> {
    let has_heads = workload.with_heads(Heads::Varied).is_some();
    match wanted {
        Some(wanted) if !has_heads => Err(format!(
            "heads = {wanted} applies to the workloads hello and hash; this race runs {}",
            workload.name()
        )),
        _ => Ok(has_heads.then(|| wanted.unwrap_or_default())),
    }
}

/// Returns the workload with the heads of a race. Results from before heads could be chosen used
/// identical ones.
pub(crate) fn given(workload: Workload, asked: &Asked) -> Workload {
    let heads = asked.heads.unwrap_or(Heads::Identical);
    workload.with_heads(heads).unwrap_or(workload)
}
