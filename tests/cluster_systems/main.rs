//! Shapes of well-known operators, and the tools that write the same objects.

mod opponents;
mod systems;
