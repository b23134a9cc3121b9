//! Between the cores and the processes of a server: letters, who carries them, and who is a member.

pub(crate) mod letters;
pub(crate) mod mail;
pub(crate) mod membership;
pub(crate) mod mesh;
