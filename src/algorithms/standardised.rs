//! What tests of random actions have in common.

/// So many draws that no mean below has a standard error above 0.01.
const DRAWS: u32 = 20_000;
/// Six standard errors.
const TOLERANCE: f64 = 0.06;

/// Assert that the elements of what `draw` returns have a mean of 0 and a variance of 1, and that none follows another.
pub(super) fn assert_standardised<const ELEMENTS: usize>(mut draw: impl FnMut() -> [f64; ELEMENTS]) {
    let mut means = [0.0f64; ELEMENTS];
    let mut products = [[0.0f64; ELEMENTS]; ELEMENTS];
    for _ in 0..DRAWS {
        let drawn = draw();
        for ((value, mean), products) in drawn.iter().zip(&mut means).zip(&mut products) {
            *mean += value / f64::from(DRAWS);
            products.iter_mut().zip(&drawn).for_each(|(product, other)| *product += value * other / f64::from(DRAWS));
        }
    }
    for (element, (mean, products)) in means.iter().zip(&products).enumerate() {
        assert!(mean.abs() < TOLERANCE, "element {element}: {means:?}");
        for (other, product) in products.iter().enumerate() {
            let expected = if element == other { 1.0 } else { 0.0 };
            assert!((product - expected).abs() < TOLERANCE, "elements {element} and {other}: {products:?}");
        }
    }
}
