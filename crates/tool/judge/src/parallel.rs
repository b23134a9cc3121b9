//! Parallel computation.

/// Maps over all CPUs: unpacking histograms and bootstraps take nearly all of the time.
pub(crate) fn in_parallel<'a, T: Sync, R: Send>(
    items: &'a [T],
    map: impl Fn(&'a T) -> R + Sync,
) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = items.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let map = &map;
        let threads: Vec<_> = items
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().map(map).collect::<Vec<R>>()))
            .collect();
        threads
            .into_iter()
            .flat_map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
