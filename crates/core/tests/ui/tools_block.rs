#![allow(unused_variables, dead_code)]

use helve_core::tools;

struct Lamp;
struct Fan;
struct Heater;
struct Oven;

#[tools(crate = helve_core)]
impl Lamp {
    /// Changes the lamp.
    #[tool]
    async fn change(&mut self) {}

    /// Takes the lamp away.
    #[tool]
    async fn take(self) {}

    /// Is called like another.
    #[tool(name = "change")]
    async fn swap(&self) {}

    #[tool(idempotnt)]
    async fn misspelt(&self) {}

    #[tool]
    async fn undescribed(&self) {}
}

#[tools(crate = helve_core)]
impl Fan {
    async fn turn(&self) {}
}

#[tools(crate = helve_core)]
impl Clone for Heater {
    fn clone(&self) -> Self {
        Heater
    }
}

#[tools(timeout = "5s")]
impl Oven {
    /// Bakes.
    #[tool]
    async fn bake(&self) {}
}

#[tools(crate = helve_core)]
struct Kitchen;

fn main() {}
