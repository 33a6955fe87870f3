//! The tree of the PAL paper (Zhang et al. 2021, arXiv 2110.01101, sections 4 and 5), to compare with: K-ary, floats of 32
//! bits, each level padded to whole groups of siblings that lie next to each other, the difference of an update carried from
//! the leaf to the root, siblings scanned from left to right, one element at a time, for one thread.

pub(crate) struct PaperTree {
    /// The levels of the tree, leaves first.
    levels: Vec<Vec<f32>>,
    fanout_bits: u32,
}

impl PaperTree {
    /// A tree built from the leaves up, so that the comparison starts from sums as good as floats can hold.
    pub(crate) fn new(priorities: &[f32], fanout: usize) -> Self {
        let mut levels = Vec::new();
        let mut level = priorities.to_vec();
        while level.len() > 1 {
            level.resize(level.len().next_multiple_of(fanout), 0.0);
            let above = level.chunks_exact(fanout).map(|group| group.iter().sum()).collect();
            levels.push(std::mem::replace(&mut level, above));
        }
        // The root has a group of its own, so that the groups below it lie on cache lines.
        level.resize(fanout, 0.0);
        levels.push(level);
        Self { levels, fanout_bits: fanout.trailing_zeros() }
    }

    pub(crate) fn total(&self) -> f32 {
        self.levels[self.levels.len() - 1][0]
    }

    pub(crate) fn update(&mut self, slot: usize, priority: f32) {
        let difference = priority - self.levels[0][slot];
        let mut node = slot;
        for level in &mut self.levels {
            level[node] += difference;
            node >>= self.fanout_bits;
        }
    }

    pub(crate) fn find(&self, mut target: f32) -> usize {
        let fanout = 1 << self.fanout_bits;
        let mut node = 0;
        for level in self.levels.iter().rev().skip(1) {
            // Rounding can lead a descent beyond the last group.
            let first = (node << self.fanout_bits).min(level.len() - fanout);
            let group = &level[first..][..fanout];
            let mut child = 0;
            while child + 1 < fanout && target >= group[child] {
                target -= group[child];
                child += 1;
            }
            node = first + child;
        }
        node
    }
}
