//! A body in libmujoco's simulator: its state, and how it is moved as Gymnasium moves it.

use std::sync::Arc;

use mujoco_rs::wrappers::mj_model::MjtGeomBase;
use mujoco_rs::wrappers::{MjData, MjModel};

use super::drawing::Limb;
use crate::environments::Generator;

/// A distribution around zero.
#[derive(Debug, Clone, Copy)]
pub(super) enum Noise {
    /// Uniform between minus its scale and its scale.
    Uniform,
    /// Normal, with its scale as the standard deviation.
    Normal,
}

impl Noise {
    fn add(self, random: &mut Generator, values: &mut [f64], scale: f64) {
        for value in values {
            *value += match self {
                Self::Uniform => random.uniform(-scale, scale),
                Self::Normal => scale * random.standard_normal(),
            };
        }
    }
}

/// One simulation; the model is shared with the others of this process.
pub(super) struct Simulation {
    data: MjData<Arc<MjModel>>,
    frame_skip: u32,
    step_seconds: f64,
}

impl Simulation {
    pub(super) fn new(model: Arc<MjModel>, frame_skip: u32) -> Self {
        let step_seconds = model.opt().timestep * f64::from(frame_skip);
        Self { data: MjData::new(model), frame_skip, step_seconds }
    }

    /// Forget the last episode, draw another start around the model's, and compute the forces and places that belong to it. As in
    /// Gymnasium, positions are drawn first.
    pub(super) fn restart(&mut self, random: &mut Generator, scale: f64, velocity_noise: Noise) {
        self.data.reset();
        Noise::Uniform.add(random, self.data.qpos_mut(), scale);
        velocity_noise.add(random, self.data.qvel_mut(), scale);
        self.data.forward();
    }

    /// Apply an action for as many simulation steps as the task has in one of its own.
    pub(super) fn advance(&mut self, action: &[f32]) {
        for (control, &value) in self.data.ctrl_mut().iter_mut().zip(action) {
            *control = f64::from(value);
        }
        for _ in 0..self.frame_skip {
            self.data.step();
        }
    }

    /// As [`advance`](Self::advance); the result is the speed along the first of the coordinates.
    pub(super) fn advance_forward(&mut self, action: &[f32]) -> f64 {
        let x_before = self.positions()[0];
        self.advance(action);
        (self.positions()[0] - x_before) / self.step_seconds
    }

    /// As [`advance`](Self::advance), followed by what only the tasks need that observe [`Simulation::contact_forces`]:
    /// the simulator itself does not compute them.
    pub(super) fn advance_with_contact_forces(&mut self, action: &[f32]) {
        self.advance(action);
        self.data.rne_post_constraint();
    }

    /// Simulated time of one environment step.
    pub(super) fn step_seconds(&self) -> f64 {
        self.step_seconds
    }

    /// Simulated time of one simulation step.
    pub(super) fn timestep_seconds(&self) -> f64 {
        self.data.model().opt().timestep
    }

    /// Generalised coordinates.
    pub(super) fn positions(&self) -> &[f64] {
        self.data.qpos()
    }

    /// Their velocities.
    pub(super) fn velocities(&self) -> &[f64] {
        self.data.qvel()
    }

    /// The last action, before the simulator clipped it.
    pub(super) fn controls(&self) -> &[f64] {
        self.data.ctrl()
    }

    /// Where each body is, as of the last evaluation of the forces. Body 0 is the world.
    pub(super) fn body_positions(&self) -> &[[f64; 3]] {
        self.data.xpos()
    }

    /// Where each site is, as of the last evaluation of the forces.
    pub(super) fn site_positions(&self) -> &[[f64; 3]] {
        self.data.site_xpos()
    }

    /// The capsules and balls of all bodies, as of the last evaluation of the forces: all that these tasks are made of.
    pub(super) fn limbs(&self) -> Vec<Limb> {
        let model = self.data.model();
        let (kinds, sizes, bodies) = (model.geom_type(), model.geom_size(), model.geom_bodyid());
        let (places, turns) = (self.data.geom_xpos(), self.data.geom_xmat());
        let limb = |index: usize| {
            let half_length = match kinds[index] {
                MjtGeomBase::mjGEOM_CAPSULE => sizes[index][1],
                MjtGeomBase::mjGEOM_SPHERE => 0.0,
                _ => return None,
            };
            // A capsule lies along the third axis of its own: the third column of its rotation.
            let end = |direction: f64| [0, 1, 2].map(|axis| places[index][axis] + direction * half_length * turns[index][3 * axis + 2]);
            Some(Limb { ends: [end(-1.0), end(1.0)], radius: sizes[index][0], body: usize::try_from(bodies[index]).unwrap_or(0) })
        };
        (0..kinds.len()).filter_map(limb).collect()
    }

    /// Masses of all bodies, and the places of their centres.
    pub(super) fn masses(&self) -> (&[f64], &[[f64; 3]]) {
        (self.data.model().body_mass(), self.data.xipos())
    }

    /// Inertia and mass of each body, about the centre of the whole.
    pub(super) fn inertias(&self) -> &[[f64; 10]] {
        self.data.cinert()
    }

    /// Rotational and linear velocity of each body, about the centre of the whole.
    pub(super) fn body_velocities(&self) -> &[[f64; 6]] {
        self.data.cvel()
    }

    /// Force of the actuators on each degree of freedom.
    pub(super) fn actuator_forces(&self) -> &[f64] {
        self.data.qfrc_actuator()
    }

    /// Force of the constraints on each degree of freedom.
    pub(super) fn constraint_forces(&self) -> &[f64] {
        self.data.qfrc_constraint()
    }

    /// External torque and force on each body.
    pub(super) fn contact_forces(&self) -> &[[f64; 6]] {
        self.data.cfrc_ext()
    }
}
