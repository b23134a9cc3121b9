//! Classes of requests whose durations differ.

/// The class of a request that goes to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Class {
    /// It only reads.
    Read,
    /// It may write.
    Write,
    /// A part of a request that goes to several nodes.
    SeveralNodes,
    /// A script or function that may write.
    Script,
    /// A command that may block: its duration is chosen by the client.
    Blocking,
    /// It has no keys, or belongs to a transaction, a subscription …
    #[default]
    Other,
}

impl Class {
    /// The number of classes.
    pub(crate) const COUNT: usize = 6;

    /// All classes, with their names in the metrics.
    pub(crate) const ALL: [(Class, &'static str); Class::COUNT] = [
        (Class::Read, "read"),
        (Class::Write, "write"),
        (Class::SeveralNodes, "several_nodes"),
        (Class::Script, "script"),
        (Class::Blocking, "blocking"),
        (Class::Other, "other"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_its_place_in_the_list() {
        for (number, (class, _)) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, number);
        }
    }
}
