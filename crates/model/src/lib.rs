//! What inter-thread communication costs: taxonomy, equations, fit, prediction.
#![forbid(unsafe_code)]
