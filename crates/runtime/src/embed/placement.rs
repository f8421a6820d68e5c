//! The policies by which components get their CPUs.

/// The policy for components without a CPU of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// On the worker of the creating component, or the first worker without one; with threads,
    /// wherever the operating system puts them.
    #[default]
    WithCreator,
    /// On the CPUs in turn.
    Spread,
    /// All on the first CPU.
    Single,
    /// At random, by the seed if there is one.
    Random,
    /// As [`Placement::WithCreator`], until an idle worker steals some from a busy one: components
    /// that compute, not those that talk. With threads as [`Placement::WithCreator`].
    Steal,
    /// As [`Placement::WithCreator`] or where a plan says, and then near the components they talk
    /// with: samples of messages and of running times show which components talk and which
    /// compute, and components move when that pays.
    Talk,
}
