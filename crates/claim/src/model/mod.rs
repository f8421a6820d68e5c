//! The protocol under a model checker: the code that ships, over a folder that is modelled.
//!
//! A member is a function from the answers it got to its next step: what it asks of its folder, or
//! of other processes (`player`). So the explorer needs no threads. It keeps the folder and each
//! member's answers, lets each member that has not ended take its step in turn, and goes on from
//! every state that it has not seen (`explorer`), with each end of a process and each damage that
//! the model allows. A member that is stopped is one whose turn does not come for long. The number
//! of turns that are taken from a member is bounded, as in the other crates' models.
//!
//! A step is atomic if the kernel makes it so: a rename, a removal, reading a file that does not
//! change. Listing a folder is not (`world`): it begins and ends, and what comes or goes in between
//! is listed or not. Nor is reading a member's file while its process writes it.
//!
//! In all states no core belongs to two living members, and no operation fails or goes on for ever.
//! In the end the newest state tells who has which cores, and a newcomer gets all others. After
//! damage it gets none that somebody has: what a removed state gave back is free again only when
//! its holder next changes something, or ends.
//!
//! Models have two or three cores and members, keep three states instead of ten, and look twice at
//! what others may drop. They do not see errors of the file system, processes whose number is used
//! again, removed files of members, and files that other users cannot read. Nor do they see
//! differences that only cost time: a rebuilt state that leaves out what members want, or what they
//! dispute, costs those who take such a core a second attempt, since they look.

mod explorer;
mod player;
mod tests;
mod text;
mod world;
