//! Syncs beside one whose newest commit is broken for ever.
//!
//! In: a Sync that stays broken. Out: success if the other Syncs apply their commits and prune
//! removed objects as if it did not exist.

use super::dice::Dice;
use super::steps::SYNCS;
use super::world::World;
use super::world::chapters::SOON;

/// The newest commit of one Sync is broken for ever, and the others go on.
pub(crate) async fn beside_broken(world: &mut World, broken: usize, dice: &mut Dice) -> Result<(), String> {
    world.breaks(broken);
    let others = [(broken + 1) % SYNCS, (broken + 2) % SYNCS];
    for round in 0..3 {
        let sync = *dice.of(&others);
        match round {
            0 => {
                let id = world.one_of(sync, dice);
                world.changes(sync, id);
            }
            1 => world.gives(others[0], others[1], dice),
            // Prunes do not wait for a broken Sync whose files cannot hold the objects.
            _ => drop(world.removes(sync, 2)),
        }
        world.meddles_with(broken, dice);
        world.is_reached(SOON).await?;
    }
    world.rests().await?;
    // Nobody can say that the broken commit does not want what the others leave to it.
    let left = world.leaves_to_broken(others[0], broken, dice);
    world.waits(SOON).await?;
    world.are_there(&left, "the folder that cannot be read has it")
}
