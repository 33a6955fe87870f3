//! An actor-critic of one's own, made of the prelude alone: a Gaussian policy, two critics and a learned temperature.

use shoal::prelude::*;

const NAME: &str = "gaussian";
const TEMPERATURE: Metric = Metric::last("temperature");
const METRICS: &[Metric] = &[LOSS, GRADIENT_NORM, TEMPERATURE];

struct Gaussian {
    config: Config,
    transitions: Transitions,
    policy: NetworkSpec,
    critic: NetworkSpec,
}

impl Gaussian {
    fn new(config: &Config, environment: &EnvironmentSpec) -> Result<Self, AlgorithmError> {
        let elements = continuous_actions(NAME, environment)?;
        if config.replay.initial_priority == InitialPriority::TdError {
            return Err(AlgorithmError::Refused {
                key: "replay.initial_priority",
                reason: "its policy tells no values; use \"max\"".into(),
            });
        }
        let (inputs, hidden) = (environment.observation.len(), &config.network.hidden);
        let head = |name: &str| NamedHead { name: name.into(), outputs: elements };
        Ok(Self {
            policy: NetworkSpec::perceptron(inputs, hidden, Head::Named(vec![head("mean"), head("deviation")])),
            critic: NetworkSpec::perceptron(inputs + elements, hidden, Head::Linear { outputs: 1 }),
            transitions: Transitions::new(config, environment),
            config: config.clone(),
        })
    }
}

impl Algorithm for Gaussian {
    fn name(&self) -> &'static str {
        NAME
    }

    fn experience(&self) -> &dyn Experience {
        &self.transitions
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn network(&self) -> &NetworkSpec {
        &self.policy
    }

    fn sizes(&self) -> Sizes {
        let (policy, critic) = (self.policy.parameter_count(), self.critic.parameter_count());
        let [of_policy, of_number] = [policy, 1].map(|parameters| Trained::state_values(parameters, WithTarget::No));
        let state = of_policy + 2 * Trained::state_values(critic, WithTarget::Yes) + of_number;
        Sizes { published: policy, learned: policy + 2 * critic + 1, state }
    }

    fn exploration(&self, _environment: usize, _of: usize, _env_steps: u64) -> f32 {
        1.0
    }

    fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
        Ok(Box::new(Acting { network: build_for_acting(self.policy.clone())? }))
    }

    fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError> {
        let Config { learner, network, machine, .. } = &self.config;
        let build = |spec: &NetworkSpec| build_network(spec.clone(), network.engine, learner.device.parse()?, machine.torch_threads);
        // With one seed both would be the same, and stay so.
        let critic = |index: u32| -> Result<Trained, AlgorithmError> {
            let parameters = self.critic.initialise(derive_seed(seed, index));
            Ok(Trained::new(learner, build(&self.critic)?, Some(build(&self.critic)?), &parameters))
        };
        Ok(Box::new(Learner {
            policy: Trained::new(learner, build(&self.policy)?, None, &self.policy.initialise(seed)),
            critics: [critic(0)?, critic(1)?],
            logarithm: [0.0],
            adam: Adam::new(1, adam_settings(learner)),
            errors: Vec::new(),
        }))
    }
}

/// Actions, the noise in them, and the logarithms of their densities.
#[derive(Default)]
struct Draws {
    actions: Vec<f32>,
    noise: Vec<f32>,
    log_densities: Vec<f32>,
}

/// An action of the policy for each row of its outputs.
fn draw(outputs: &[f32], elements: usize, random: &mut Random) -> Draws {
    let mut draws = Draws::default();
    for output in outputs.chunks(2 * elements) {
        let (means, deviations) = output.split_at(elements);
        let mut log_density = 0.0;
        for (mean, deviation) in means.iter().zip(deviations) {
            let noise: f32 = random.sample(StandardNormal);
            draws.actions.push(mean + deviation.exp() * noise);
            draws.noise.push(noise);
            log_density -= 0.5 * noise * noise + deviation;
        }
        draws.log_densities.push(log_density);
    }
    draws
}

struct Acting {
    network: Box<dyn Network>,
}

impl Policy for Acting {
    fn network(&mut self) -> &mut dyn Network {
        &mut *self.network
    }

    fn choose(&self, outputs: &[f32], exploration: f32, random: &mut Random, action: ActionMut<'_>) -> Choice {
        if let ActionMut::Continuous(action) = action {
            let elements = action.len();
            let drawn = draw(outputs, elements, random);
            action.copy_from_slice(if exploration > 0.0 { &drawn.actions[..] } else { &outputs[..elements] });
        }
        Choice::default()
    }

    fn choose_randomly(&self, _outputs: &[f32], random: &mut Random, action: ActionMut<'_>) -> Choice {
        if let ActionMut::Continuous(action) = action {
            uniform(random, action);
        }
        Choice::default()
    }
}

struct Learner {
    policy: Trained,
    critics: [Trained; 2],
    /// Of the temperature.
    logarithm: [f32; 1],
    adam: Adam,
    errors: Vec<f32>,
}

/// Rows of an observation and an action.
fn joined(observations: &[f32], actions: &[f32], rows: usize) -> Vec<f32> {
    let (observations, actions) = (observations.chunks(observations.len() / rows), actions.chunks(actions.len() / rows));
    observations.zip(actions).flat_map(|(observation, action)| [observation, action].concat()).collect()
}

impl Learner {
    /// What the critics should give.
    fn targets(&mut self, batch: &Batch, elements: usize, random: &mut Random) -> Vec<f32> {
        let rows = batch.rows();
        let observations = batch.column(transition::NEXT_OBSERVATION).as_f32();
        let mut outputs = vec![0.0; rows * 2 * elements];
        self.policy.online.infer(Values::F32(observations), rows, &mut outputs);
        let draws = draw(&outputs, elements, random);
        let inputs = joined(observations, &draws.actions, rows);
        let (mut least, mut values) = (vec![f32::INFINITY; rows], vec![0.0; rows]);
        for critic in &mut self.critics {
            critic.target().infer(Values::F32(&inputs), rows, &mut values);
            least.iter_mut().zip(&values).for_each(|(least, value)| *least = least.min(*value));
        }
        let temperature = self.logarithm[0].exp();
        least.iter_mut().zip(&draws.log_densities).for_each(|(value, log_density)| *value -= temperature * log_density);
        let mut targets = Vec::new();
        bootstrap(batch, &least, &mut targets);
        targets
    }

    /// The gradient of the policy, of which it returns that of the temperature.
    fn policy_gradient(&mut self, observations: &[f32], elements: usize, random: &mut Random, gradient: &mut [f32]) -> f32 {
        let rows = observations.len() / self.policy.online.spec().inputs();
        let mut outputs = vec![0.0; rows * 2 * elements];
        self.policy.online.forward(Values::F32(observations), rows, &mut outputs);
        let draws = draw(&outputs, elements, random);
        let inputs = joined(observations, &draws.actions, rows);
        let (mut values, ones, mut slopes) = (vec![0.0; rows], vec![1.0; rows], vec![0.0; inputs.len()]);
        let critic = &mut self.critics[0].online;
        critic.forward(Values::F32(&inputs), rows, &mut values);
        critic.backward(&ones, None, Some(&mut slopes));
        let (width, temperature) = (inputs.len() / rows, self.logarithm[0].exp());
        let mut output_gradient = Vec::new();
        for ((slopes, output), noise) in slopes.chunks(width).zip(outputs.chunks(2 * elements)).zip(draws.noise.chunks(elements)) {
            let (slopes, deviations) = (&slopes[width - elements..], &output[elements..]);
            output_gradient.extend(slopes.iter().map(|slope| -slope));
            let rises = slopes.iter().zip(deviations).zip(noise).map(|((slope, deviation), noise)| slope * deviation.exp() * noise);
            output_gradient.extend(rises.map(|rise| -rise - temperature));
        }
        self.policy.online.backward(&output_gradient, Some(gradient), None);
        -draws.log_densities.iter().map(|log_density| log_density - elements as f32).sum::<f32>()
    }
}

impl Learning for Learner {
    fn published(&mut self) -> &[f32] {
        self.policy.online.parameters()
    }

    fn gradient(&mut self, batch: &Batch, random: &mut Random, gradient: &mut [f32]) -> Share {
        let rows = batch.rows();
        let [observations, actions] = [transition::OBSERVATION, transition::ACTION].map(|field| batch.column(field).as_f32());
        let elements = actions.len() / rows;
        let (policy_gradient, others) = gradient.split_at_mut(self.policy.online.parameters().len());
        let (critic_gradients, temperature_gradient) = others.split_at_mut(others.len() - 1);
        let mut share = Share::of(METRICS, rows, batch.largest_weight);
        let targets = self.targets(batch, elements, random);
        let inputs = joined(observations, actions, rows);
        self.errors = vec![0.0; rows];
        let each = critic_gradients.len() / 2;
        for (critic, gradient) in self.critics.iter_mut().zip(critic_gradients.chunks_mut(each)) {
            let (mut values, mut slopes) = (vec![0.0; rows], vec![0.0; rows]);
            critic.online.forward(Values::F32(&inputs), rows, &mut values);
            for row in 0..rows {
                let (loss, slope) = Loss::Mse.at(values[row] - targets[row]);
                slopes[row] = batch.weights[row] * slope;
                self.errors[row] += 0.5 * slope.abs();
                share.tally.add(LOSS, f64::from(batch.weights[row] * loss));
            }
            critic.online.backward(&slopes, Some(gradient), None);
        }
        temperature_gradient[0] = self.policy_gradient(observations, elements, random, policy_gradient);
        share
    }

    fn errors(&self) -> &[f32] {
        &self.errors
    }

    fn apply(&mut self, gradient: &mut [f32], total: &mut Share, learning_rate: f32) -> f32 {
        let (policy_gradient, others) = gradient.split_at_mut(self.policy.online.parameters().len());
        let (critic_gradients, temperature_gradient) = others.split_at_mut(others.len() - 1);
        take_mean(policy_gradient, total);
        take_mean(temperature_gradient, total);
        take_weighted_mean(critic_gradients, total);
        let mut norm = self.policy.step(policy_gradient, learning_rate);
        let each = critic_gradients.len() / 2;
        for (critic, gradient) in self.critics.iter_mut().zip(critic_gradients.chunks_mut(each)) {
            norm += critic.step(gradient, learning_rate);
            critic.follow(0.005);
        }
        self.adam.step(&mut self.logarithm, temperature_gradient, learning_rate);
        total.tally.add(GRADIENT_NORM, f64::from(norm));
        total.tally.add(TEMPERATURE, f64::from(self.logarithm[0].exp()));
        norm
    }

    fn save(&self, state: &mut [f32]) {
        let mut writer = StateWriter::new(state);
        self.policy.save(&mut writer);
        self.critics.iter().for_each(|critic| critic.save(&mut writer));
        writer.values(&self.logarithm);
        writer.adam(&self.adam);
    }

    fn restore(&mut self, state: &[f32]) {
        let mut reader = StateReader::new(state);
        self.policy.restore(&mut reader);
        self.critics.iter_mut().for_each(|critic| critic.restore(&mut reader));
        self.logarithm.copy_from_slice(reader.values(1));
        self.adam = reader.adam(self.adam.settings(), 1);
    }
}

#[test]
fn an_actor_critic_made_of_the_prelude_alone_keeps_the_rules_of_algorithms() {
    let mut catalogue = Catalogue::default();
    catalogue.add_algorithm(Declaration { name: NAME, keys: &[], learns_from_bytes: false }, Gaussian::new).unwrap();
    let environment = shoal::environments::spec("Pendulum-v1").unwrap();
    let mut config = Config::for_environment(&environment.id);
    config.algorithm.name = NAME.into();
    let algorithm = catalogue.algorithms().build(&config, &environment).unwrap();
    check_algorithm(&*algorithm, &random_transitions(&environment, 64)).unwrap();
}
