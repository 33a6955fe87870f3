//! The gradients of the whole losses of APPO and PPO, from fragments to parameters: against differences of the losses that they report,
//! whole or in parts; and what their settings make of losses and networks.

#[path = "policy_gradients/advantages.rs"]
mod advantages;
#[path = "policy_gradients/appo.rs"]
mod appo;
#[path = "policy_gradients/auto_encoder.rs"]
mod auto_encoder;
#[path = "policy_gradients/case.rs"]
mod case;
#[path = "policy_gradients/defaults.rs"]
mod defaults;
#[path = "policy_gradients/first_policy.rs"]
mod first_policy;
#[path = "policy_gradients/ppo.rs"]
mod ppo;
#[path = "policy_gradients/settings.rs"]
mod settings;
#[path = "policy_gradients/value_network.rs"]
mod value_network;
