//! A segment may hold anything. The inspector reports or refuses; it never panics.

use std::time::Duration;

use rand::{Rng, RngExt, SeedableRng};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use shoal::inspector::{History, Inspection, Look, RunList, draw};
use shoal::segment::Region;
use shoal::segment::description::FieldDescription;

use super::fixture::{CAPACITY, CHECKSUM_WORD, Known, World, put_word, seal};
use crate::support::object::Object;

const PAGE_BYTES: usize = 4096;

/// Do everything that the inspector can do with a segment of these `bytes`, in this process. Returns whether it could be opened.
fn exercise(world: &World, known: &Known, bytes: &[u8]) -> bool {
    let object = Object::new(bytes);
    let _announcement = world.announce(known.segment.identity(), &object.name);
    let list = RunList::of(&world.registry);
    assert!(!list.to_string().is_empty() && serde_json::to_string(&list).is_ok());
    let inspection = match Inspection::open(&world.registry, std::process::id()) {
        Ok(inspection) => inspection,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let look = Look::at(inspection.segment());
    let report = inspection.report(Duration::ZERO);
    let text = report.to_string();
    assert!(!text.contains(|character: char| character.is_control() && character != '\n'), "{text:?}");
    serde_json::to_string(&report).unwrap();
    for slot in 0..CAPACITY {
        match inspection.transition(slot) {
            Ok(transition) => assert!(!transition.to_string().is_empty() && serde_json::to_string(&transition).is_ok()),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                // Whatever is wrong with the description is wrong for every slot, and torn slots take their time.
                break;
            }
        }
    }
    let mut history = History::default();
    let report = inspection.report_since(&look);
    history.push(&report);
    let mut terminal = Terminal::new(TestBackend::new(100, 40)).unwrap();
    terminal.draw(|frame| draw(frame, &report, &history)).unwrap();
    true
}

#[test]
fn flipped_bytes_of_the_header_are_errors_of_the_real_binary_too() {
    let (world, known) = (World::new(), Known::new());
    let good = known.bytes();
    for position in 0..8 * (CHECKSUM_WORD + 1) {
        let mut bytes = good.clone();
        bytes[position] ^= 0x41;
        assert!(!exercise(&world, &known, &bytes), "a damaged header was believed: byte {position}");
        if !position.is_multiple_of(200) {
            continue;
        }
        let object = Object::new(&bytes);
        let _announcement = world.announce(known.segment.identity(), &object.name);
        world.inspect(&[&known.pid(), "--interval-ms", "1"]).expect_err("a damaged header was believed");
        assert!(world.inspect(&[]).is_ok(), "the list survives a damaged run");
    }
}

#[test]
fn headers_with_any_sizes_and_a_right_checksum_do_not_panic() {
    let (world, known) = (World::new(), Known::new());
    let good = known.bytes();
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(1);
    let values = [0, 1, 2, 7, 8, 64, 1 << 20, 1 << 24, 1 << 31, 1 << 32, u64::MAX >> 1, u64::MAX - 1, u64::MAX];
    for _ in 0..2_000 {
        let mut bytes = good.clone();
        for _ in 0..random.random_range(1..4) {
            // Sizes of the layout and the list of regions.
            let value = if random.random() { values[random.random_range(0..values.len())] } else { random.random() };
            put_word(&mut bytes, random.random_range(16..CHECKSUM_WORD), value);
        }
        seal(&mut bytes);
        exercise(&world, &known, &bytes);
    }
}

#[test]
fn cut_and_empty_segments_are_errors() {
    let (world, known) = (World::new(), Known::new());
    let good = known.bytes();
    for length in [0, 1, 8, 500, PAGE_BYTES - 1, PAGE_BYTES, 2 * PAGE_BYTES + 3, good.len() - 1] {
        let object = Object::new(&good[..length]);
        let _announcement = world.announce(known.segment.identity(), &object.name);
        world.inspect(&[&known.pid()]).expect_err("a cut segment was believed");
    }
}

#[test]
fn garbage_in_any_region_is_reported_without_a_panic() {
    let (world, known) = (World::new(), Known::new());
    let good = known.bytes();
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(2);
    for region in Region::ALL {
        let section = known.segment.layout().section(region);
        if section.length_bytes == 0 {
            continue;
        }
        let range = section.offset_bytes..section.offset_bytes + section.length_bytes;
        for kind in 0..12 {
            let mut bytes = good.clone();
            match kind {
                0 => bytes[range.clone()].fill(0xff),
                1 => bytes[range.clone()].fill(0x7f),
                2 | 3 => random.fill_bytes(&mut bytes[range.clone()]),
                _ => {
                    for _ in 0..64 {
                        let position = random.random_range(range.clone());
                        bytes[position] = random.random();
                    }
                }
            }
            assert!(exercise(&world, &known, &bytes), "only the header decides whether a segment is opened");
            if kind < 3 {
                let object = Object::new(&bytes);
                let _announcement = world.announce(known.segment.identity(), &object.name);
                world.inspect(&[&known.pid(), "--interval-ms", "1"]).unwrap();
                let _ = world.inspect(&[&known.pid(), "--transition", "3"]);
            }
        }
    }
}

#[test]
fn everything_behind_the_header_may_be_garbage_at_once() {
    let (world, known) = (World::new(), Known::new());
    let good = known.bytes();
    for seed in 0..20 {
        let mut bytes = good.clone();
        rand_pcg::Pcg64Mcg::seed_from_u64(seed).fill_bytes(&mut bytes[PAGE_BYTES..]);
        assert!(exercise(&world, &known, &bytes));
    }
}

#[test]
fn descriptions_that_contradict_the_store_are_errors() {
    let (world, known) = (World::new(), Known::new());
    let mut description = known.segment.description().unwrap();
    let honest = description.fields.clone();
    let field = |element: &str, length| FieldDescription {
        name: "x\x1b[2J".into(),
        element: element.into(),
        length,
        shape: vec![length],
        stack: 0,
    };
    let with = |extra: FieldDescription| honest.iter().cloned().chain([extra]).collect::<Vec<_>>();
    for (fields, expected) in [
        (with(field("f128", 1)), "unknown element type `f128`"),
        (with(FieldDescription { stack: 4, ..field("u8", 4) }), "field 5"),
        (with(FieldDescription { stack: usize::MAX, ..field("u8", 4) }), "field 5"),
        (with(FieldDescription { stack: usize::MAX, ..field("u8", usize::MAX) }), "field 5"),
        (with(FieldDescription { stack: 1 << 61, ..field("u8", 1 << 61) }), "field 5"),
        (with(field("f32", usize::MAX)), "field 5"),
        (with(field("f32", 0)), "field 5"),
        (with(FieldDescription { shape: vec![2, 3], ..field("f32", 4) }), "4 elements of shape [2, 3]"),
        (with(FieldDescription { shape: vec![usize::MAX, 2], ..field("f32", 4) }), "field 5"),
        (with(field("f32", 3)), "transitions of"),
        (honest[..2].to_vec(), "transitions of"),
        (Vec::new(), "transitions of"),
    ] {
        description.fields = fields;
        let bytes = known.bytes_with(&description);
        let object = Object::new(&bytes);
        let _announcement = world.announce(known.segment.identity(), &object.name);
        let error = world.inspect(&[&known.pid(), "--transition", "3"]).unwrap_err();
        assert!(error.contains(expected) && !error.contains('\x1b'), "{error}");
        assert!(exercise(&world, &known, &bytes), "the report does without the fields");
    }
}

#[test]
fn an_unreadable_description_is_a_problem_in_the_report() {
    let (world, known) = (World::new(), Known::new());
    let mut bytes = known.bytes();
    put_word(&mut bytes, known.segment.layout().section(Region::Description).offset_bytes / 8, u64::MAX);
    let object = Object::new(&bytes);
    let _announcement = world.announce(known.segment.identity(), &object.name);
    let report = world.json(&[&known.pid()]);
    assert!(report["description"].is_null());
    let problem = report["description_problem"].as_str().unwrap();
    assert!(problem.starts_with("the run's description cannot be read: it claims"), "{problem}");
    assert!(problem.contains("`shoal resume FOLDER`"), "what helps is told too: {problem}");
    assert_eq!(report["run"]["env_steps"], 120, "the rest is still reported");
}
