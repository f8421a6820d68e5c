//! Components, channels, carriers and services behind a C ABI.
mod services;
