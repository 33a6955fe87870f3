//! Environments in Python keep the rules of all environments, equal the native ones where there are both, and are refused
//! with words that help where they cannot be used.

use shoal::environments::{
    Action, ActionSpace, Environment, EnvironmentError, EnvironmentRequest, Moment, ObservationSpace, Step, VectorEnvironment, conformance,
    python, registry,
};
use shoal::values::{ValueType, Values};

use crate::support::python::{NO_CACHE, in_prepared_process, request};
use crate::support::skipped;

/// Steps after which two environments that have not differed are taken to be equal.
const COMPARED_STEPS: usize = 3_000;

fn observe(environment: &mut dyn Environment) -> Vec<f32> {
    let mut observation = vec![f32::NAN; environment.spec().observation.len()];
    environment.reset(Some(1), (&mut observation).into()).unwrap();
    observation
}

fn reward(environment: &mut dyn Environment, action: Action<'_>) -> f64 {
    let mut observation = vec![0.0; environment.spec().observation.len()];
    environment.step(action, (&mut observation).into()).unwrap().reward
}

fn refusal(id: &str) -> String {
    let in_process = request(id, "{}").make().err().unwrap_or_else(|| panic!("{id} was made")).to_string();
    let probed = request(id, "{}").examine().unwrap_err().to_string();
    assert_eq!(in_process, probed, "an actor and the supervisor must say the same");
    probed
}

#[test]
fn environments_in_python_conform() {
    in_prepared_process("environments::environments_in_python_conform", || {
        for id in ["gymnasium:CartPole-v1", "gymnasium:Pendulum-v1", "gymnasium:MountainCarContinuous-v0"] {
            conformance::check(|| registry::make(id)).unwrap_or_else(|error| panic!("{id}: {error}"));
        }
        conformance::check(|| request("python:shapes:make_cart_pole_with_a_switch", "{}").make()).unwrap();
    });
}

#[test]
fn gymnasium_s_environments_equal_the_native_ones() {
    in_prepared_process("environments::gymnasium_s_environments_equal_the_native_ones", || {
        let is_of_gymnasium = |id: &&str| !registry::spec(id).unwrap().observation.is_image();
        for id in registry::names().filter(is_of_gymnasium) {
            let in_python = trajectory(&mut *registry::make(&format!("gymnasium:{}", id.trim_start_matches("mujoco:"))).unwrap());
            let native = trajectory(&mut *registry::make(id).unwrap());
            let difference = in_python.iter().zip(&native).position(|(left, right)| left != right);
            assert_eq!(difference.map(|step| (step, &in_python[step], &native[step])), None, "{id}");
        }
    });
}

/// Observations and results under actions that sweep the space. They stay inside its bounds: outside of them
/// MountainCarContinuous charges for the action before it is clipped, and Python is only given clipped ones.
fn trajectory(environment: &mut dyn Environment) -> Vec<(Vec<f32>, Option<Step>)> {
    let space = environment.spec().action.clone();
    let mut observation = vec![0.0; environment.spec().observation.len()];
    environment.reset(Some(7), (&mut observation).into()).unwrap();
    let mut seen = vec![(observation.clone(), None)];
    for index in 0..COMPARED_STEPS {
        let wave = (index as f32 * 0.37).sin();
        let values: Vec<f32> = match &space {
            ActionSpace::Discrete { .. } => Vec::new(),
            ActionSpace::Box { high, .. } => high.iter().map(|high| high * wave).collect(),
        };
        let action = match space {
            ActionSpace::Discrete { n } => Action::Discrete(index * 7 / 3 % n),
            ActionSpace::Box { .. } => Action::Continuous(&values),
        };
        let step = environment.step(action, (&mut observation).into()).unwrap();
        seen.push((observation.clone(), Some(step)));
        if step.ended() {
            environment.reset(None, (&mut observation).into()).unwrap();
            seen.push((observation.clone(), None));
        }
    }
    seen
}

#[test]
fn what_is_known_before_a_run_is_what_its_actors_find() {
    in_prepared_process("environments::what_is_known_before_a_run_is_what_its_actors_find", || {
        for id in ["gymnasium:CartPole-v1", "gymnasium:HalfCheetah-v5", "gymnasium:LunarLander-v3", "gymnasium:FrozenLake-v1"] {
            let request = EnvironmentRequest::new(id);
            let examined = request.examine().unwrap();
            assert_eq!(&examined.spec, request.make().unwrap().spec());
            let names: Vec<&str> = examined.software.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names[..3], ["python", "gymnasium", "numpy"]);
            assert_eq!(names.contains(&"mujoco"), id.contains("HalfCheetah"), "{names:?}");
        }
        let spec = registry::spec("gymnasium:HalfCheetah-v5").unwrap();
        assert_eq!((spec.observation.len(), spec.time_limit_steps, spec.reward_threshold), (17, Some(1_000), Some(4_800.0)));
        assert_eq!(spec.action, ActionSpace::Box { low: vec![-1.0; 6], high: vec![1.0; 6] });
    });
}

#[test]
fn observations_of_every_shape_become_one_row_and_images_stay_bytes_with_their_channels_first() {
    in_prepared_process("environments::observations_of_every_shape_become_one_row_and_images_stay_bytes_with_their_channels_first", || {
        let mut nested = request("python:shapes:Nested", "{}").make().unwrap();
        assert_eq!(observe(&mut *nested), [0.25, 0.5, 0.0, 0.0, 1.0, 7.0]);

        let mut image = request("python:shapes.py:Image", "{}").make().unwrap();
        assert_eq!(image.spec().observation, ObservationSpace::bytes(&[1, 2, 3]));
        let mut bytes = image.spec().observation.zeros();
        image.reset(Some(1), bytes.values_mut()).unwrap();
        assert_eq!(bytes.values(), Values::U8(&[248, 249, 250, 251, 252, 253]));

        let mut colours = request("python:shapes.py:Colours", "{}").make().unwrap();
        assert_eq!(colours.spec().observation, ObservationSpace::bytes(&[3, 5, 4]));
        let mut bytes = colours.spec().observation.zeros();
        colours.reset(Some(1), bytes.values_mut()).unwrap();
        colours.step(Action::Discrete(0), bytes.values_mut()).unwrap();
        let expected: Vec<u8> = (0..3).flat_map(|channel| (0..20).map(move |pixel| 3 * pixel + channel)).collect();
        assert_eq!(bytes.values(), Values::U8(&expected));

        // Bytes that are no pixels would be squashed by the first layer.
        let bits = request("python:shapes.py:Bits", "{}").make().unwrap();
        assert_eq!(bits.spec().observation.element, ValueType::F32);
    });
}

#[test]
fn channels_are_last_where_that_dimension_is_of_their_number_and_smaller_than_both_others() {
    in_prepared_process("environments::channels_are_last_where_that_dimension_is_of_their_number_and_smaller_than_both_others", || {
        let shown = |shape: [usize; 3]| {
            let environment = request("python:shapes:Shaped", &format!(r#"{{"shape": {shape:?}}}"#)).make().unwrap();
            environment.spec().observation.shape.clone()
        };
        for (shape, expected) in [([84, 84, 3], [3, 84, 84]), ([7, 5, 1], [1, 7, 5]), ([4, 4, 3], [3, 4, 4]), ([12, 8, 4], [4, 12, 8])] {
            assert_eq!(shown(shape), expected, "{shape:?}");
        }
        for shape in [[16, 4, 4], [2, 3, 3], [12, 4, 8], [4, 84, 84], [1, 20, 3], [84, 84, 2]] {
            assert_eq!(shown(shape), shape, "as it is");
        }
    });
}

#[test]
fn answers_may_be_of_any_type_that_python_makes_numbers_of() {
    in_prepared_process("environments::answers_may_be_of_any_type_that_python_makes_numbers_of", || {
        let mut environment = request("python:shapes:AnswersInNumpy", "{}").make().unwrap();
        let mut observation = observe(&mut *environment);
        let step = environment.step(Action::Discrete(0), (&mut observation).into()).unwrap();
        assert_eq!(step, Step { reward: 0.5, terminated: false, truncated: true });
        assert_eq!(observation, [1.0, 2.0]);

        for (class, expected) in [("AnswersInBools", 1.0), ("AnswersInATypeOfItsOwn", 0.25)] {
            let request = request(&format!("python:shapes:{class}"), "{}");
            request.examine().unwrap();
            let mut environment = request.make().unwrap();
            observe(&mut *environment);
            assert_eq!(reward(&mut *environment, Action::Discrete(0)), expected, "{class}");
        }
    });
}

#[test]
fn actions_arrive_as_the_space_says_and_are_the_environment_s_to_keep() {
    in_prepared_process("environments::actions_arrive_as_the_space_says_and_are_the_environment_s_to_keep", || {
        let mut later = request("python:shapes:LaterIndices", "{}").make().unwrap();
        observe(&mut *later);
        assert_eq!([0, 1, 2].map(|index| reward(&mut *later, Action::Discrete(index))), [-1.0, 0.0, 1.0]);

        // Memory has no room for a number of Python for each.
        let mut many = request("python:shapes:ManyIndices", "{}").make().unwrap();
        observe(&mut *many);
        assert_eq!([0, 999_999_999, 0].map(|index| reward(&mut *many, Action::Discrete(index))), [0.0, 999_999_999.0, 0.0]);

        let mut keeps = request("python:shapes:KeepsActions", "{}").make().unwrap();
        observe(&mut *keeps);
        assert_eq!(reward(&mut *keeps, Action::Continuous(&[0.5, 0.5])), 0.0);
        assert_eq!(reward(&mut *keeps, Action::Continuous(&[1.5, 0.5])), 1.0, "an action that is kept must not change");
        assert_eq!(reward(&mut *keeps, Action::Continuous(&[9.0, 0.5])), 0.5, "an action is brought within the bounds");
    });
}

#[test]
fn each_combination_of_many_numbers_is_one_action_and_arrives_as_the_array_that_the_space_says() {
    let name = "environments::each_combination_of_many_numbers_is_one_action_and_arrives_as_the_array_that_the_space_says";
    in_prepared_process(name, || {
        let made = |space: &str| request("python:shapes:Combined", &format!(r#"{{"space": "{space}"}}"#)).make().unwrap();
        for (space, shape, dtype, digits) in [
            ("MultiDiscrete([2, 3])", &[2][..], "int64", &[0.0, 1.0, 2.0, 10.0, 11.0, 12.0][..]),
            ("MultiDiscrete([3])", &[1], "int64", &[0.0, 1.0, 2.0]),
            ("MultiDiscrete([[2], [2]], dtype=numpy.int8, start=[[3], [-1]])", &[2, 1], "int8", &[29.0, 30.0, 39.0, 40.0]),
            ("MultiBinary(2)", &[2], "int8", &[0.0, 1.0, 10.0, 11.0]),
            ("MultiBinary((1, 2, 1))", &[1, 2, 1], "int8", &[0.0, 1.0, 10.0, 11.0]),
            ("MultiDiscrete(3, start=1)", &[], "int64", &[1.0, 2.0, 3.0]),
            ("MultiBinary(())", &[], "int8", &[0.0, 1.0]),
        ] {
            let mut combined = made(space);
            let spec = combined.spec();
            assert_eq!(spec.action, ActionSpace::Discrete { n: digits.len() }, "{space}");
            let arrays = spec.action_arrays.clone().unwrap();
            assert_eq!((&*arrays.shape, &*arrays.dtype, arrays.combinations()), (shape, dtype, Some(digits.len())), "{space}");
            observe(&mut *combined);
            // Twice, because the environment may do with an array what it likes.
            for (index, digits) in digits.iter().enumerate().chain(digits.iter().enumerate()) {
                assert_eq!(reward(&mut *combined, Action::Discrete(index)), *digits, "{space}");
            }
        }
        let mut most = made("MultiBinary(12)");
        observe(&mut *most);
        assert_eq!(reward(&mut *most, Action::Discrete(4_095)), 111_111_111_111.0);
        let mut ones = made("MultiDiscrete([1] * 100)");
        observe(&mut *ones);
        assert_eq!(reward(&mut *ones, Action::Discrete(0)), 0.0, "more numbers than an array of NumPy has dimensions");
        assert_eq!(request("python:shapes:LaterIndices", "{}").make().unwrap().spec().action_arrays, None);
    });
}

#[test]
fn arguments_reach_the_constructor_and_functions_serve_as_well_as_classes() {
    in_prepared_process("environments::arguments_reach_the_constructor_and_functions_serve_as_well_as_classes", || {
        let configured = request("python:shapes:Configured", r#"{"length": 3, "names": ["a", "b"]}"#).make().unwrap();
        assert_eq!(configured.spec().observation.len(), 5);
        let limited = request("python:shapes:make_limited", r#"{"steps": 12}"#).make().unwrap();
        assert_eq!(limited.spec().time_limit_steps, Some(12));
        let cart_pole = EnvironmentRequest {
            keyword_arguments: r#"{"max_episode_steps": 7}"#.into(),
            ..EnvironmentRequest::new("gymnasium:CartPole-v1")
        };
        assert_eq!(cart_pole.make().unwrap().spec().time_limit_steps, Some(7));
    });
}

#[test]
fn an_environment_that_a_module_of_one_s_own_registers_is_found_by_that_module() {
    in_prepared_process("environments::an_environment_that_a_module_of_one_s_own_registers_is_found_by_that_module", || {
        for id in ["gymnasium:registering:Registered-v0", "gymnasium:registering.py:Registered-v0"] {
            let request = request(id, "{}");
            assert_eq!(request.examine().unwrap().spec.time_limit_steps, Some(9));
            observe(&mut *request.make().unwrap());
        }
    });
}

#[test]
fn a_result_of_render_that_is_no_picture_is_reported() {
    in_prepared_process("environments::a_result_of_render_that_is_no_picture_is_reported", || {
        let rendered = |picture: &str| {
            let request = request("python:shapes:Drawn", &format!(r#"{{"picture": "{picture}"}}"#));
            let mut environment = EnvironmentRequest { drawn: true, ..request }.make().unwrap();
            observe(&mut *environment);
            environment.picture().map(|picture| (picture.width, picture.height)).map_err(|error| error.to_string())
        };
        assert_eq!(rendered("numpy.zeros((4, 6, 3), numpy.uint8)").unwrap(), (6, 4));
        for (picture, returned) in [
            ("numpy.zeros((64, 64), numpy.float32)", "float32 of the shape (64, 64)"),
            ("numpy.zeros((0, 6, 3), numpy.uint8)", "uint8 of the shape (0, 6, 3)"),
            ("None", "None"),
            ("[1, 2]", "[1, 2]"),
        ] {
            let message = rendered(picture).unwrap_err();
            let told =
                format!("in render: TypeError: render() returned {returned}, not a picture: bytes (uint8) of the shape (height, width, 3)");
            assert!(message.ends_with(&told), "{message}");
        }
    });
}

#[test]
fn an_environment_that_takes_no_render_mode_has_no_pictures_and_other_errors_of_making_it_are_told() {
    in_prepared_process(
        "environments::an_environment_that_takes_no_render_mode_has_no_pictures_and_other_errors_of_making_it_are_told",
        || {
            let drawn = |id: &str| EnvironmentRequest { drawn: true, ..request(id, "{}") }.make();
            for id in ["python:shapes:make_drawn", "python:shapes:Claiming"] {
                let mut environment = drawn(id).unwrap();
                observe(&mut *environment);
                let message = environment.picture().unwrap_err().to_string();
                assert!(message.starts_with(&format!("`{id}` cannot be drawn")), "{message}");
                assert!(
                    message.contains("takes render_mode and keeps it (a function that makes them takes it and hands it on)"),
                    "{message}"
                );
            }
            let message = drawn("python:shapes:LacksAFont").err().expect("it cannot be made").to_string();
            assert!(message.contains("raised an exception in its construction: TypeError: no font of that size\n"), "{message}");
            assert!(message.contains("in __init__\n"), "{message}");
        },
    );
}

#[test]
fn mujoco_s_renderer_draws_where_there_is_no_display() {
    let drawn = EnvironmentRequest { drawn: true, ..EnvironmentRequest::new("gymnasium:InvertedPendulum-v5") };
    let mut alone = python::interpreter_of(&drawn).unwrap().command();
    alone.args(["-c", "import mujoco.egl; mujoco.egl.GLContext(1, 1)"]).envs([NO_CACHE]);
    if !alone.output().unwrap().status.success() {
        return skipped::because("MuJoCo's renderer does not begin with EGL here");
    }
    in_prepared_process("environments::mujoco_s_renderer_draws_where_there_is_no_display", || {
        let mut environment = drawn.make().unwrap();
        observe(&mut *environment);
        let picture = environment.picture().unwrap();
        assert_eq!((picture.width, picture.height), (480, 480), "as Gymnasium renders it");
        assert!(picture.bytes.iter().any(|byte| *byte != picture.bytes[0]), "nothing is to be seen");
    });
}

#[test]
fn what_cannot_be_used_is_refused_by_name() {
    in_prepared_process("environments::what_cannot_be_used_is_refused_by_name", || {
        for (id, parts) in [
            ("gymnasium:CartPoel-v1", &["CartPole-v1"][..]),
            ("gymnasium:HalfCheetah-v99", &["v99", "HalfCheetah-v5"]),
            ("gymnasium:Registered-v0", &["write gymnasium:MODULE:Registered-v0"]),
            ("gymnasium:no_such_module:X-v0", &["there is no module no_such_module", "tests/data/python (environment.python_path)"]),
            ("gymnasium:registering:Registred-v0", &["names like it: Registered-v0"]),
            ("python:shapes:NestedActions", &["Dict(", "Discrete, MultiDiscrete, MultiBinary and Box are supported"]),
            ("python:shapes:ManySwitches", &["MultiBinary(13): 8,192 combinations", "at most 4,096", "as one Discrete space"]),
            ("python:shapes:EndlessActions", &["no finite bounds"]),
            ("python:shapes:Told", &["'mission': Words()", "no fixed number of values", "gymnasium.wrappers.FilterObservation"]),
            ("python:shapes:LiteralIndices", &["Discrete(4), and Gymnasium", "let LiteralIndices extend that class"]),
            ("python:shapes:Imag", &["shapes has no Imag", "did you mean Image?"]),
            ("python:shapes:no_environment", &["makes a dict", "no observation_space and no action_space"]),
            ("python:no_such_module:X", &["there is no module no_such_module", "tests/data/python (environment.python_path)"]),
            ("python:no/such/file.py:X", &["there is no file no/such/file.py", "tests/data/python (environment.python_path)"]),
        ] {
            let message = refusal(id);
            assert!(message.starts_with(&format!("`{id}` cannot be used: ")), "{message}");
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
        for name in ["observation_space", "action_space"] {
            let old = request("python:shapes:OldSpaces", &format!(r#"{{"name": "{name}"}}"#)).examine().unwrap_err().to_string();
            let told =
                "is namespace(n=2) of the type types.SimpleNamespace, which is no space of Gymnasium (take it from gymnasium.spaces)";
            assert!(old.ends_with(&format!("cannot be used: its {name} {told}")), "{old}");
        }
        let listed = request("python:shapes:RewardsInAList", "{}").examine().unwrap_err().to_string();
        assert!(listed.contains("step() returned reward = array([1.]), which is no number"), "{listed}");
        let other = request("python:shapes:ArrayForADict", "{}").examine().unwrap_err().to_string();
        assert!(other.contains("the observation array([0., 0....dtype=float32) is not one of the observation space, Dict("), "{other}");
        let message = refusal("python:shapes:NeedsAPackage");
        let told = "if it is yours, name its folder in environment.python_path, else install it:  ";
        assert!(message.contains(told) && message.contains("-m pip install \"no_such_package_anywhere\"\n"), "{message}");
        assert!(message.contains("    import no_such_package_anywhere.inside"), "{message}");
        let message = refusal("python:shapes:NeedsANewerPackage");
        assert!(message.contains("No module named 'numpy.no_such_module_of_it'\n") && message.contains("in __init__\n"), "{message}");
        assert!(!message.contains("pip install"), "NumPy is there: {message}");
    });
}

#[test]
fn an_exception_comes_with_its_traceback_and_leaves_an_environment_that_can_be_reset() {
    in_prepared_process("environments::an_exception_comes_with_its_traceback_and_leaves_an_environment_that_can_be_reset", || {
        let mut faulty = request("python:faulty:Faulty", r#"{"how": "raise", "after": 2}"#).make().unwrap();
        let mut observation = observe(&mut *faulty);
        let mut step = || faulty.step(Action::Discrete(0), (&mut observation).into());
        step().unwrap();
        step().unwrap();
        let EnvironmentError::Python { during, summary, traceback, .. } = step().unwrap_err() else { panic!("another error") };
        assert_eq!((during, &*summary), (Moment::Step(3), "ValueError: the wheels came off"));
        assert!(traceback.contains("in raise_an_error\n    raise ValueError(\"the wheels came off\")"), "{traceback}");
        assert!(!traceback.contains("<shoal"), "only the user's frames: {traceback}");
        assert!(matches!(step(), Err(EnvironmentError::NeedsReset { .. })));
        observe(&mut *faulty);
    });
}

#[test]
fn an_environment_may_take_its_bounds_and_seeds_literally_and_need_not_close() {
    in_prepared_process("environments::an_environment_may_take_its_bounds_and_seeds_literally_and_need_not_close", || {
        let literal = request("python:shapes:Literal", "{}");
        literal.examine().unwrap();
        let mut vector = VectorEnvironment::new(vec![literal.make().unwrap()]).unwrap();
        // Seeds of 64 bits are derived from it.
        vector.reset(7).unwrap();
        // Rounded to 32 bits, all but one of these bounds lie outside the 64-bit bounds.
        for (action, expected) in [([-9.0, -9.0], -0.8), ([9.0, 9.0], 0.4)] {
            vector.step(shoal::environments::Actions::Continuous(&action)).unwrap();
            assert!((f64::from(vector.rewards()[0]) - expected).abs() < 1e-6, "{:?}", vector.rewards());
        }
        request("python:shapes:Positive", "{}").examine().unwrap();
        let endless = request("python:shapes:make_endless", "{}").examine().unwrap().spec;
        assert_eq!((endless.time_limit_steps, endless.reward_threshold), (None, None));
        let narrow = request("python:shapes:Narrow", "{}");
        let ActionSpace::Box { low, high } = narrow.examine().unwrap().spec.action else { panic!("its actions are numbers") };
        assert_eq!((low, high), (vec![-1.0, 0.1, 0.0], vec![1.0, 0.1, f32::MAX]));
    });
}

#[test]
fn numbers_that_are_not_finite_are_named_with_their_place() {
    in_prepared_process("environments::numbers_that_are_not_finite_are_named_with_their_place", || {
        for (how, expected) in [
            ("observe nan", "gave observation[1] = NaN in step 1 of an episode"),
            ("reward infinity", "gave reward = inf in step 1 of an episode"),
            ("observe less", "the observation has the shape (2,), and the observation space (3,)"),
            ("exit", "SystemExit: no longer"),
        ] {
            let mut faulty = request("python:faulty:Faulty", &format!(r#"{{"how": "{how}", "after": 0}}"#)).make().unwrap();
            let mut observation = observe(&mut *faulty);
            let message = faulty.step(Action::Discrete(0), (&mut observation).into()).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    });
}

#[test]
fn what_any_step_returns_and_no_actor_can_read_is_named() {
    in_prepared_process("environments::what_any_step_returns_and_no_actor_can_read_is_named", || {
        for (class, told) in [
            ("AnswersNothing", "reward = None, which is no number"),
            ("EndsWithANumber", "terminated = 1, which is neither True nor False"),
            ("OldStep", "4 values, not (observation, reward, terminated, truncated, info)"),
        ] {
            // Made, not examined: as in a step of an actor, whose first ones were good.
            let mut environment = request(&format!("python:shapes:{class}"), "{}").make().unwrap();
            let mut observation = observe(&mut *environment);
            let message = environment.step(Action::Discrete(0), (&mut observation).into()).unwrap_err().to_string();
            assert!(message.ends_with(&format!("in step 1 of an episode: TypeError: step() returned {told}")), "{message}");
        }
    });
}

#[test]
fn what_is_shown_as_bytes_and_is_none_is_refused_with_its_value() {
    in_prepared_process("environments::what_is_shown_as_bytes_and_is_none_is_refused_with_its_value", || {
        let stepped = |colour: &str| {
            let mut image = request("python:shapes:Washed", &format!(r#"{{"colour": "{colour}"}}"#)).make().unwrap();
            let mut bytes = image.spec().observation.zeros();
            image.reset(Some(1), bytes.values_mut()).unwrap();
            image.step(Action::Discrete(0), bytes.values_mut()).map(|_| bytes).map_err(|error| error.to_string())
        };
        for (colour, value) in [("0.5", "0.5"), ("300", "300"), ("-1", "-1"), ("nan", "nan"), ("numpy.float32(255.5)", "255.5")] {
            let message = stepped(colour).unwrap_err();
            assert!(
                message.contains(&format!("has the value {value}, and the observation space whole numbers from 0 to 255")),
                "{message}"
            );
        }
        for colour in ["7", "7.0", "numpy.uint8(7)", "numpy.int16(7)"] {
            assert_eq!(stepped(colour).unwrap().values(), Values::U8(&[7; 6]), "{colour}");
        }
    });
}

#[test]
fn a_step_allocates_nothing_in_rust() {
    in_prepared_process("environments::a_step_allocates_nothing_in_rust", || {
        let make = |id: &str| VectorEnvironment::new((0..4).map(|_| registry::make(id).unwrap()).collect()).unwrap();
        let mut discrete = make("gymnasium:CartPole-v1");
        let mut continuous = make("gymnasium:Pendulum-v1");
        discrete.reset(1).unwrap();
        continuous.reset(1).unwrap();
        let allocations = allocation_counter::measure(|| {
            for index in 0..100 {
                discrete.step(shoal::environments::Actions::Discrete(&[index % 2; 4])).unwrap();
                continuous.step(shoal::environments::Actions::Continuous(&[0.1; 4])).unwrap();
            }
        });
        assert_eq!(allocations.count_total, 0);
    });
}

#[test]
fn a_process_that_was_not_prepared_is_told_so() {
    if shoal::machine::Python::of_this_process().unwrap().is_none() {
        let error = registry::make("gymnasium:CartPole-v1").err().expect("the process was not prepared");
        assert!(matches!(error, EnvironmentError::NotPrepared { .. }), "{error}");
        assert!(error.to_string().contains("become_ready"), "{error}");
    }
}
