//! Groups of half-channels that are peers, directly or through others, and the messages among them.

use super::ChannelId;
use super::known::Known;

/// Groups of half-channels: whatever is sent into one is received from it.
#[derive(Clone, Debug, Default)]
pub(super) struct Hubs {
    /// By channel: its hub.
    of: Vec<usize>,
    /// By hub: its first channel.
    pub(super) first: Vec<ChannelId>,
}

impl Hubs {
    /// The hubs of a number of channels, given the connected pairs. They are in the order of
    /// their first channels.
    pub(super) fn new(
        channels: usize,
        connected: impl Iterator<Item = (ChannelId, ChannelId)>,
    ) -> Hubs {
        let mut parent: Vec<usize> = (0..channels).collect();
        for (a, b) in connected {
            let a = root(&mut parent, a.index());
            let b = root(&mut parent, b.index());
            // The lower number stays.
            parent[a.max(b)] = a.min(b);
        }
        let mut hubs = Hubs {
            of: vec![0; channels],
            first: Vec::new(),
        };
        let mut number = vec![usize::MAX; channels];
        for channel in 0..channels {
            let root = root(&mut parent, channel);
            if number[root] == usize::MAX {
                number[root] = hubs.first.len();
                hubs.first.push(ChannelId(channel as u32));
            }
            hubs.of[channel] = number[root];
        }
        hubs
    }

    pub(super) fn count(&self) -> usize {
        self.first.len()
    }

    /// None of a channel that was made later than the hubs.
    pub(super) fn find(&self, channel: ChannelId) -> Option<usize> {
        self.of.get(channel.index()).copied()
    }

    pub(super) fn of(&self, channel: ChannelId) -> usize {
        self.of[channel.index()]
    }
}

fn root(parent: &mut [usize], channel: usize) -> usize {
    let mut node = channel;
    while parent[node] != node {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    node
}

/// The messages on each channel.
#[derive(Default)]
pub(super) struct Incoming {
    pub(super) hubs: Hubs,
    /// By hub.
    pub(super) messages: Vec<Known>,
}

impl Incoming {
    pub(super) fn of(&self, channel: ChannelId) -> Known {
        match self.messages.is_empty() {
            true => Known::Unknown,
            // Channels that passes make are younger than the hubs.
            false => self
                .hubs
                .find(channel)
                .map_or(Known::Unknown, |hub| self.messages[hub]),
        }
    }
}
