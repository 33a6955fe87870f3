//! The text of the live line and of the plain line: pure functions of a snapshot and the width.

use indicatif::BinaryBytes;

use super::{Snapshot, share};
use crate::readable::{clock, score, short};

/// What a line may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns that the line may fill.
    pub width: usize,
    /// Whether escape codes for colours may appear.
    pub colour: bool,
    /// Whether signs beyond ASCII may appear.
    pub unicode: bool,
}

const BAR_COLUMNS: std::ops::RangeInclusive<usize> = 8..=24;
const GAP: &str = "  ";
/// How far the bar goes for a score that reaches the goal before the run has ended.
const ALMOST: f64 = 0.99;

/// A piece of the line, from its fullest form to its shortest, each with its worth: the piece that is worth least is
/// shortened first.
struct Piece {
    forms: Vec<(u8, String)>,
}

/// The live line: a bar towards the nearest stop condition, then as many figures as fit. It is never wider than
/// `look.width`.
///
/// `first_return` is the mean return of the run's first evaluation, from which the way to `stop_eval_return` is
/// measured.
pub fn live_line(snapshot: &Snapshot, first_return: Option<f64>, look: Look) -> String {
    let fraction = fraction_done(snapshot, first_return);
    let percent = format!("{:>3.0}%", fraction * 100.0);
    let with_bar = look.width >= 40;
    let reserved = if with_bar { BAR_COLUMNS.start() + 1 + percent.len() + GAP.len() } else { 0 };
    let figures = fit(pieces(snapshot), look.width - reserved, GAP);
    if !with_bar {
        return figures.chars().take(look.width).collect();
    }
    let columns = (look.width - (reserved - BAR_COLUMNS.start()) - figures.chars().count()).min(*BAR_COLUMNS.end());
    format!("{} {percent}{GAP}{figures}", bar(fraction, columns, look))
}

/// The line for logs and pipes: all figures of the live line, without bar or colour.
pub fn plain_line(snapshot: &Snapshot) -> String {
    let figures: Vec<String> = pieces(snapshot).into_iter().map(|mut piece| piece.forms.swap_remove(0).1).collect();
    format!("[{}] {}", clock(snapshot.wall_s), figures.join(", "))
}

/// How far the run has come towards whichever stop condition is nearest, from 0 to 1.
fn fraction_done(snapshot: &Snapshot, first_return: Option<f64>) -> f64 {
    let steps = share(snapshot.env_steps as f64, snapshot.stop_env_steps as f64);
    let time = snapshot.stop_wall_s.map_or(0.0, |stop| share(snapshot.wall_s, stop));
    // The return of the best weights counts as far as it is beyond chance. The whole way is done once the goal is
    // confirmed, and the run ends then.
    let score = match (first_return, snapshot.best_eval_ci95_low, snapshot.stop_eval_return) {
        (_, Some(best), Some(stop)) if best >= stop => ALMOST,
        (Some(first), Some(best), Some(stop)) => share(best - first, stop - first).min(ALMOST),
        _ => 0.0,
    };
    steps.max(time).max(score).clamp(0.0, 1.0)
}

/// Seconds until the step limit or the time limit, whichever is nearer, at the pace since learning began. The pace of
/// evaluation returns cannot be extrapolated.
fn seconds_left(snapshot: &Snapshot) -> Option<f64> {
    let pace = snapshot.env_steps_per_s_of_learning;
    let steps_left = snapshot.stop_env_steps.saturating_sub(snapshot.env_steps) as f64;
    let by_steps = (pace > 0.0 && snapshot.stop_env_steps > 0).then(|| steps_left / pace);
    let by_time = snapshot.stop_wall_s.map(|stop| (stop - snapshot.wall_s).max(0.0));
    [by_steps, by_time].into_iter().flatten().reduce(f64::min)
}

fn pieces(snapshot: &Snapshot) -> Vec<Piece> {
    let piece = |worth, text: String| Piece { forms: vec![(worth, text)] };
    let steps = short(snapshot.env_steps as f64);
    let of_all = format!("{steps}/{} steps", short(snapshot.stop_env_steps as f64));
    let mut pieces = vec![Piece { forms: vec![(10, of_all), (12, format!("{steps} steps")), (12, steps)] }];
    if let Some(mean) = snapshot.eval_return_mean {
        let mean = format!("eval {}", score(mean));
        pieces.push(Piece { forms: vec![(5, format!("{mean}{}", evaluation_details(snapshot))), (11, mean)] });
    }
    if let Some(mean) = snapshot.train_return_mean {
        pieces.push(piece(6, format!("train {}", score(mean))));
    }
    pieces.push(piece(9, format!("{} steps/s", short(snapshot.env_steps_per_s))));
    pieces.push(piece(4, format!("{} updates/s", short(snapshot.updates_per_s))));
    if snapshot.learned_per_s > 0.0 {
        pieces.push(piece(1, format!("{} samples/s", short(snapshot.learned_per_s))));
    }
    if snapshot.cores_used > 0.0 {
        let cores = format!("{:.1} cores", snapshot.cores_used);
        let kinds = snapshot.cores_by_kind.in_parentheses(1);
        pieces.push(Piece { forms: vec![(0, format!("{cores}{kinds}")), (1, cores)] });
    }
    if let Some(share) = snapshot.machine_busy_share {
        pieces.push(piece(0, format!("machine {:.0}% busy", share * 100.0)));
    }
    if let Some(share) = snapshot.gpu_busy_share {
        pieces.push(piece(1, format!("GPU {:.0}% busy", share * 100.0)));
    }
    if let Some(memory_bytes) = snapshot.gpu_memory_bytes {
        pieces.push(piece(0, format!("{} of its memory", BinaryBytes(memory_bytes))));
    }
    if let Some(share) = snapshot.peak_share {
        pieces.push(piece(0, format!("{:.0}% of the peak", share * 100.0)));
    }
    pieces.push(piece(3, format!("policy lag {}", short(snapshot.policy_lag_mean))));
    let fill = share(snapshot.replay_size as f64, snapshot.replay_capacity as f64);
    pieces.push(piece(2, format!("replay {:.0}%", fill * 100.0)));
    if snapshot.only_evaluates {
        pieces.push(piece(7, "evaluating the last weights".into()));
    } else if let Some(seconds) = seconds_left(snapshot) {
        // A run with a target return may end before its limits.
        let bound = if snapshot.stop_eval_return.is_some() { "<" } else { "" };
        pieces.push(piece(7, format!("ETA {bound}{}", clock(seconds))));
    }
    pieces
}

/// For instance ` (best confirmed 431.0, target 475.0)`, or nothing.
fn evaluation_details(snapshot: &Snapshot) -> String {
    let best = snapshot.best_eval_return.map(|best| format!("best confirmed {}", score(best)));
    let target = snapshot.stop_eval_return.map(|target| format!("target {}", score(target)));
    let details: Vec<String> = best.into_iter().chain(target).collect();
    if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) }
}

/// Shortens, then drops, the piece that is worth least until the line fits. The last piece stays in its shortest form.
fn fit(mut pieces: Vec<Piece>, columns: usize, gap: &str) -> String {
    loop {
        let line = pieces.iter().map(|piece| piece.forms[0].1.as_str()).collect::<Vec<_>>().join(gap);
        let least = (0..pieces.len()).min_by_key(|&at| pieces[at].forms[0].0);
        match least {
            Some(least) if line.chars().count() > columns => {
                if pieces[least].forms.len() > 1 {
                    pieces[least].forms.remove(0);
                } else if pieces.len() > 1 {
                    pieces.remove(least);
                } else {
                    return line;
                }
            }
            _ => return line,
        }
    }
}

fn bar(fraction: f64, columns: usize, look: Look) -> String {
    let (done, left) = if look.unicode { ("━", "─") } else { ("#", "-") };
    let filled = (fraction * columns as f64).floor() as usize;
    let (done, left) = (done.repeat(filled), left.repeat(columns - filled));
    if look.colour { format!("\x1b[32m{done}\x1b[0m\x1b[2m{left}\x1b[0m") } else { format!("{done}{left}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::ByKind;

    fn snapshot() -> Snapshot {
        Snapshot {
            wall_s: 25.0,
            training_s: 20.0,
            env_steps: 212_480,
            stop_env_steps: 500_000,
            env_steps_per_s: 8421.0,
            env_steps_per_s_of_learning: 8400.0,
            updates_per_s: 262.4,
            learned_per_s: 67_174.0,
            cores_used: 1.86,
            train_return_mean: Some(187.34),
            eval_return_mean: Some(412.0),
            best_eval_return: Some(431.0),
            best_eval_ci95_low: Some(424.0),
            stop_eval_return: Some(475.0),
            policy_lag_mean: 12.3,
            replay_size: 21_000,
            replay_capacity: 100_000,
            ..Snapshot::default()
        }
    }

    fn plain(width: usize) -> Look {
        Look { width, colour: false, unicode: false }
    }

    #[test]
    fn a_wide_terminal_shows_everything() {
        assert_eq!(
            live_line(&snapshot(), Some(21.0), plain(208)),
            "#####################---  89%  212k/500k steps  eval 412.0 (best confirmed 431.0, target 475.0)  train 187.3  8.42k steps/s  \
             262 updates/s  67.2k samples/s  1.9 cores  policy lag 12.3  replay 21%  ETA <0:34"
        );
    }

    #[test]
    fn a_narrow_terminal_keeps_what_matters_most() {
        assert_eq!(
            live_line(&snapshot(), Some(21.0), plain(80)),
            "#################---  89%  212k/500k steps  eval 412.0  8.42k steps/s  ETA <0:34"
        );
        assert_eq!(live_line(&snapshot(), Some(21.0), plain(30)), "212k/500k steps  eval 412.0");
        assert_eq!(live_line(&snapshot(), Some(21.0), plain(10)), "212k steps");
        assert_eq!(live_line(&snapshot(), Some(21.0), plain(3)), "212");
    }

    #[test]
    fn what_the_machine_does_is_told_where_it_is_known_and_gives_way_first() {
        let known = Snapshot {
            machine_busy_share: Some(0.931),
            gpu_busy_share: Some(0.42),
            gpu_memory_bytes: Some(3 << 30),
            peak_share: Some(0.176),
            ..snapshot()
        };
        let all = ["1.9 cores", "machine 93% busy", "GPU 42% busy", "3.00 GiB of its memory", "18% of the peak", "policy lag 12.3"];
        assert!(plain_line(&known).contains(&all.join(", ")), "{}", plain_line(&known));
        let live = |width| live_line(&known, Some(21.0), plain(width));
        assert!(live(300).contains(&all.join(GAP)), "{}", live(300));
        assert!(live(200).contains("1.9 cores  GPU 42% busy  policy lag 12.3"), "{}", live(200));
        assert_eq!(live(80), live_line(&snapshot(), Some(21.0), plain(80)));
    }

    #[test]
    fn who_uses_the_cores_is_told_where_there_is_room_and_gives_way_to_everything_else() {
        let cores_by_kind = ByKind { learners: 1.0, actors: 0.84, evaluator: 0.02, supervisor: 0.003, ..ByKind::default() };
        let known = Snapshot { cores_by_kind, machine_busy_share: Some(0.931), ..snapshot() };
        assert!(plain_line(&known).contains(", 1.9 cores (learners 1.0, actors 0.8), machine 93% busy, "), "{}", plain_line(&known));
        let live = |snapshot: &Snapshot, width| live_line(snapshot, Some(21.0), plain(width));
        assert!(live(&known, 300).contains("  1.9 cores (learners 1.0, actors 0.8)  machine 93% busy  "), "{}", live(&known, 300));
        let unknown = Snapshot { cores_by_kind: ByKind::default(), ..known.clone() };
        assert_eq!(live(&known, 212), live(&unknown, 212));
        assert!(live(&known, 212).contains("  1.9 cores  machine 93% busy  "), "{}", live(&known, 212));
    }

    #[test]
    fn no_width_is_exceeded() {
        for width in 1..250 {
            for unicode in [false, true] {
                let line = live_line(&snapshot(), Some(21.0), Look { width, colour: false, unicode });
                assert!(line.chars().count() <= width, "{} columns of {width}: {line}", line.chars().count());
            }
        }
    }

    #[test]
    fn the_bar_follows_the_nearest_stop_condition() {
        let steps = Snapshot { best_eval_ci95_low: Some(22.0), ..snapshot() };
        assert!((fraction_done(&steps, Some(21.0)) - 0.42496).abs() < 1e-9);
        let time = Snapshot { stop_wall_s: Some(50.0), ..steps };
        assert_eq!(fraction_done(&time, Some(21.0)), 0.5);
        // Returns below zero: the way from -1200 to -150 is done by four fifths at -360.
        let pendulum = Snapshot { best_eval_ci95_low: Some(-360.0), stop_eval_return: Some(-150.0), ..time };
        assert!((fraction_done(&pendulum, Some(-1200.0)) - 0.8).abs() < 1e-9);
        assert_eq!(fraction_done(&Snapshot { best_eval_ci95_low: Some(-100.0), ..pendulum }, None), ALMOST);
    }

    #[test]
    fn the_time_left_is_that_of_the_nearer_limit() {
        let left = seconds_left(&snapshot()).unwrap();
        assert!((left - (500_000.0 - 212_480.0) / 8400.0).abs() < 1e-9);
        let evaluates = Snapshot { env_steps_per_s: 0.0, ..snapshot() };
        assert_eq!(seconds_left(&evaluates), Some(left), "whatever is done at this moment");
        assert_eq!(seconds_left(&Snapshot { stop_wall_s: Some(30.0), ..snapshot() }), Some(5.0));
        assert_eq!(seconds_left(&Snapshot::default()), None);
    }

    #[test]
    fn while_only_the_last_weights_are_evaluated_that_is_said_instead_of_the_time_left() {
        let last = plain_line(&Snapshot { only_evaluates: true, ..snapshot() });
        assert!(last.ends_with("replay 21%, evaluating the last weights"), "{last}");
    }

    #[test]
    fn colours_and_signs_appear_only_where_they_may() {
        let coloured = live_line(&snapshot(), None, Look { width: 100, colour: true, unicode: true });
        assert!(coloured.contains("\x1b[32m━") && coloured.contains('─'), "{coloured}");
        assert!(live_line(&snapshot(), None, plain(100)).is_ascii());
        assert!(!live_line(&snapshot(), None, plain(100)).contains('\x1b'));
    }

    #[test]
    fn the_plain_line_leaves_nothing_out() {
        assert_eq!(
            plain_line(&snapshot()),
            "[0:25] 212k/500k steps, eval 412.0 (best confirmed 431.0, target 475.0), train 187.3, 8.42k steps/s, 262 updates/s, \
             67.2k samples/s, 1.9 cores, policy lag 12.3, replay 21%, ETA <0:34"
        );
        assert_eq!(plain_line(&Snapshot::default()), "[0:00] 0/0 steps, 0 steps/s, 0 updates/s, policy lag 0, replay 0%");
    }
}
