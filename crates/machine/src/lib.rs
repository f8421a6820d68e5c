//! What a machine is: topology, costs, the profile file, recorded and synthetic machines.
#![forbid(unsafe_code)]
