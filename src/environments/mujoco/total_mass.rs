//! Keeps MuJoCo quiet about an attribute that Gymnasium's half cheetah has and MuJoCo is about to retire.
//!
//! Its compiler answers `settotalmass` with a warning, on the terminal and in a file MUJOCO_LOG.TXT in the folder where the user
//! stands, once per process. Scaling the masses of the compiled model, as the warning advises, gives the same model.

use std::borrow::Cow;

use mujoco_rs::wrappers::{MjData, MjModel};

const ATTRIBUTE: &str = " settotalmass=\"";

/// The text without the attribute, and its value in kilograms. A text without it, or with a value that is no number, stays as
/// it is and is left to the parser.
pub(super) fn take(text: &str) -> (Cow<'_, str>, Option<f64>) {
    let parts = || {
        let (before, rest) = text.split_once(ATTRIBUTE)?;
        let (value, after) = rest.split_once('"')?;
        let total_mass_kg: f64 = value.trim().parse().ok()?;
        Some((Cow::Owned(format!("{before}{after}")), Some(total_mass_kg)))
    };
    parts().unwrap_or((Cow::Borrowed(text), None))
}

/// The model with all masses and inertias scaled to that total, and with what follows from them.
pub(super) fn set(mut model: MjModel, total_mass_kg: f64) -> MjModel {
    model.set_totalmass(total_mass_kg);
    let mut data = MjData::new(Box::new(model));
    data.set_const();
    data.fwd_position();
    // The compiler averages after it has scaled, and the constraint solver measures its tolerance by the mean inertia.
    let velocities = data.qvel().len();
    let mut inertia = vec![0.0; velocities * velocities];
    data.full_m(&mut inertia).expect("the matrix has a row and a column for each degree of freedom");
    let mut model = data.model().clone();
    let meaninertia = inertia.iter().step_by(velocities + 1).sum::<f64>() / velocities as f64;
    let masses = &model.body_mass()[1..];
    let meanmass = masses.iter().sum::<f64>() / masses.len() as f64;
    (model.stat_mut().meaninertia, model.stat_mut().meanmass) = (meaninertia, meanmass);
    model
}

#[cfg(test)]
mod tests {
    use super::{set, take};
    use mujoco_rs::wrappers::MjModel;

    #[test]
    fn the_attribute_is_taken_out_with_its_value() {
        let (text, total_mass_kg) = take(r#"<compiler angle="radian" settotalmass="14"/>"#);
        assert_eq!(text, r#"<compiler angle="radian"/>"#);
        assert_eq!(total_mass_kg, Some(14.0));
    }

    #[test]
    fn other_texts_are_left_alone() {
        for text in [r#"<compiler angle="radian"/>"#, r#"<compiler settotalmass="heavy"/>"#, r#"<compiler settotalmass="14"#] {
            assert_eq!(take(text), (text.into(), None));
        }
    }

    #[test]
    fn masses_that_are_set_give_the_means_that_the_compiler_gives() {
        let text = r#"<mujoco><compiler inertiafromgeom="true"/><worldbody><body><freejoint/><geom size="0.1"/>
            <body><joint/><geom size="0.05" pos="0.3 0 0"/></body></body></worldbody></mujoco>"#;
        let plain = MjModel::from_xml_string(text).expect("the description is correct");
        let (masses, statistics) = (plain.body_mass().to_vec(), plain.stat().clone());
        // The total that it has already: nothing may change.
        let model = set(plain, masses.iter().sum());
        assert_eq!(model.body_mass(), masses);
        assert_eq!(model.stat().meaninertia.to_bits(), statistics.meaninertia.to_bits());
        assert_eq!(model.stat().meanmass.to_bits(), statistics.meanmass.to_bits());
        assert_eq!(model.stat().extent.to_bits(), statistics.extent.to_bits());
        let doubled = set(model, 2.0 * masses.iter().sum::<f64>());
        assert_eq!(doubled.stat().meanmass, 2.0 * statistics.meanmass);
        assert!(doubled.stat().meaninertia > statistics.meaninertia);
    }
}
