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
    /// Places as [`Placement::WithCreator`] does, until an idle worker steals components from a
    /// busy one: those that compute, not those that communicate. With threads, the same as
    /// [`Placement::WithCreator`].
    Steal,
    /// Places as [`Placement::WithCreator`] does, or by a plan, and then moves components near
    /// those they communicate with, when that pays: samples of messages and running times show
    /// which components communicate and which compute.
    Talk,
}
