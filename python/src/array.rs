//! NumPy arrays of every element type as bytes.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::{cast_slice, cast_slice_mut};
use half::f16;
use numpy::{
    BorrowError, Element as NumpyElement, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use shoal::replay::Element;

/// NumPy's name of an element type.
pub(crate) fn dtype_name(element: Element) -> &'static str {
    match element {
        Element::Bool => "bool",
        Element::I8 => "int8",
        Element::U8 => "uint8",
        Element::I16 => "int16",
        Element::U16 => "uint16",
        Element::F16 => "float16",
        Element::I32 => "int32",
        Element::U32 => "uint32",
        Element::F32 => "float32",
        Element::I64 => "int64",
        Element::U64 => "uint64",
        Element::F64 => "float64",
    }
}

/// The element type that NumPy calls `name`.
pub(crate) fn element_named(name: &str) -> Option<Element> {
    Element::ALL.into_iter().find(|&element| dtype_name(element) == name)
}

/// The reference count of an object.
#[expect(deprecated, reason = "the other way to ask is unsafe code, of which this package has none")]
pub(crate) fn references(object: &Bound<'_, PyAny>) -> isize {
    object.get_refcnt()
}

/// The largest array, in bytes, that is copied and not borrowed: the bookkeeping of a borrow costs as much as copying so many bytes.
const SMALL_BYTES: usize = 2_048;

/// Number of threads that fill arrays of this package with the interpreter's lock released. It is changed and read only under that lock,
/// so relaxed accesses are enough. The module asks for the lock even if Python could do without it (`gil_used = true`).
static FILLING: AtomicUsize = AtomicUsize::new(0);

/// Exists while a thread fills arrays. Meanwhile other threads must borrow the arrays that they read.
pub(crate) struct Filling;

impl Filling {
    /// Begin, under the interpreter's lock.
    pub(crate) fn begin(_py: Python<'_>) -> Self {
        FILLING.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        FILLING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An array in C order, and how its values are read.
pub(crate) struct Values<'py, T: NumpyElement> {
    array: Bound<'py, PyArrayDyn<T>>,
    held: Held<'py, T>,
}

/// The values of an array: copied if the array is small, else borrowed.
enum Held<'py, T: NumpyElement> {
    Copied(Vec<T>),
    Borrowed(PyReadonlyArrayDyn<'py, T>),
}

impl<'py, T: NumpyElement> Values<'py, T> {
    fn of(value: &Bound<'py, PyAny>) -> Option<Self> {
        let array = value.cast::<PyArrayDyn<T>>().ok().filter(|array| array.is_c_contiguous())?;
        // A thread that is about to fill an array needs the interpreter's lock first, and this thread holds it.
        let nobody_fills = FILLING.load(Ordering::Relaxed) == 0;
        let held = if nobody_fills && array.len() * size_of::<T>() <= SMALL_BYTES {
            Held::Copied(array.to_vec().ok()?)
        } else {
            Held::Borrowed(array.try_readonly().ok().filter(|array| array.as_slice().is_ok())?)
        };
        Some(Self { array: array.clone(), held })
    }

    fn slice(&self) -> &[T] {
        match &self.held {
            Held::Copied(values) => values,
            Held::Borrowed(array) => array.as_slice().unwrap_or(&[]),
        }
    }
}

macro_rules! arrays {
    ($($variant:ident $type:ty),*) => {
        /// An array that is read, in C order.
        pub(crate) enum ReadArray<'py> {
            Bool(Values<'py, bool>),
            $($variant(Values<'py, $type>),)*
        }

        impl<'py> ReadArray<'py> {
            /// `value`, if it is an array of this type in C order.
            pub(crate) fn of(value: &Bound<'py, PyAny>, element: Element) -> Option<Self> {
                match element {
                    Element::Bool => Values::of(value).map(Self::Bool),
                    $(Element::$variant => Values::of(value).map(Self::$variant),)*
                }
            }

            /// Shape of the array.
            pub(crate) fn shape(&self) -> &[usize] {
                match self {
                    Self::Bool(values) => values.array.shape(),
                    $(Self::$variant(values) => values.array.shape(),)*
                }
            }

            /// Its values' bytes.
            pub(crate) fn bytes(&self) -> &[u8] {
                match self {
                    Self::Bool(values) => cast_slice(values.slice()),
                    $(Self::$variant(values) => cast_slice(values.slice()),)*
                }
            }
        }

        /// An array that this package has made and fills. Booleans are filled as bytes.
        pub(crate) enum OwnArray {
            $($variant(Py<PyArrayDyn<$type>>),)*
        }

        impl OwnArray {
            /// Zeros of `shape`, and the array as Python sees it.
            pub(crate) fn zeros(py: Python<'_>, element: Element, shape: &[usize]) -> PyResult<(Self, Py<PyAny>)> {
                match element {
                    Element::Bool => {
                        let (array, seen) = Self::zeros(py, Element::U8, shape)?;
                        Ok((array, seen.bind(py).call_method1(intern!(py, "view"), (intern!(py, "bool"),))?.unbind()))
                    }
                    $(Element::$variant => {
                        let array = zeros(py, shape)?;
                        let seen = array.clone_ref(py).into_any();
                        Ok((Self::$variant(array), seen))
                    })*
                }
            }

            fn untyped<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyUntypedArray> {
                match self {
                    $(Self::$variant(array) => array.bind(py).as_untyped(),)*
                }
            }

            /// Begin to fill the array. An error while another thread of this process reads or fills it.
            pub(crate) fn fill<'py>(&self, py: Python<'py>) -> PyResult<FillArray<'py>> {
                Ok(match self {
                    $(Self::$variant(array) => FillArray::$variant(array.bind(py).try_readwrite()?),)*
                })
            }
        }

        /// An array while it is filled.
        pub(crate) enum FillArray<'py> {
            $($variant(PyReadwriteArrayDyn<'py, $type>),)*
        }

        impl FillArray<'_> {
            /// Its values' bytes.
            pub(crate) fn bytes_mut(&mut self) -> PyResult<&mut [u8]> {
                Ok(match self {
                    $(Self::$variant(array) => cast_slice_mut(array.as_slice_mut()?),)*
                })
            }
        }
    };
}

arrays!(I8 i8, U8 u8, I16 i16, U16 u16, F16 f16, I32 i32, U32 u32, F32 f32, I64 i64, U64 u64, F64 f64);

/// Arrays of at least so many values are made by NumPy's Python function, which raises an error if there is no memory for them.
const MANY_VALUES: usize = 1 << 24;

fn zeros<T: NumpyElement>(py: Python<'_>, shape: &[usize]) -> PyResult<Py<PyArrayDyn<T>>> {
    if shape.iter().fold(1_usize, |all, &length| all.saturating_mul(length)) < MANY_VALUES {
        return Ok(PyArrayDyn::zeros(py, shape, false).unbind());
    }
    let array = py.import("numpy")?.call_method1("zeros", (PyTuple::new(py, shape)?, T::get_dtype(py)))?;
    Ok(array.cast_into::<PyArrayDyn<T>>()?.unbind())
}

impl OwnArray {
    /// Whether only this and `seen`, the array as Python sees it, refer to the array, and only one mapping and the caller refer to `seen`.
    pub(crate) fn is_free(&self, seen: &Bound<'_, PyAny>) -> bool {
        let array = self.untyped(seen.py());
        // Booleans are seen through a view, which refers to the array of bytes.
        let (of_array, of_seen) = if array.is(seen) { (3, 3) } else { (2, 2) };
        references(array) == of_array && references(seen) == of_seen
    }

    /// Whether the array, and `seen`, the array as Python sees it, still have this type and shape, and booleans can be written.
    pub(crate) fn is_as_made(&self, seen: &Bound<'_, PyAny>, element: Element, shape: &[usize]) -> bool {
        let array = self.untyped(seen.py());
        let is_own_as_made = array.is_c_contiguous() && array.shape() == shape;
        is_own_as_made && is_array_of(seen, element, shape) && (array.is(seen) || is_writeable_view(seen))
    }
}

/// Whether the view of booleans `seen` can be written. Filling the array of bytes behind it does not tell.
fn is_writeable_view(seen: &Bound<'_, PyAny>) -> bool {
    seen.cast::<PyArrayDyn<bool>>().is_ok_and(|array| !matches!(array.try_readwrite(), Err(BorrowError::NotWriteable)))
}

/// Whether `seen` is an array of this type and shape in C order: Python code can set the type, shape and strides of an array.
pub(crate) fn is_array_of(seen: &Bound<'_, PyAny>, element: Element, shape: &[usize]) -> bool {
    let Ok(array) = seen.cast::<PyUntypedArray>() else { return false };
    let dtype = array.dtype();
    let kind = match element {
        Element::Bool => b'b',
        Element::F16 | Element::F32 | Element::F64 => b'f',
        Element::U8 | Element::U16 | Element::U32 | Element::U64 => b'u',
        Element::I8 | Element::I16 | Element::I32 | Element::I64 => b'i',
    };
    let is_of_type = dtype.kind() == kind && dtype.itemsize() == element.size_bytes() && dtype.is_native_byteorder() != Some(false);
    is_of_type && array.shape() == shape && array.is_c_contiguous()
}
