//! Syncs beside one whose newest commit is broken for ever.
//!
//! In: a Sync that stays broken. Out: whether the others take up what is committed to them, and prune what they leave out, as if
//! it were not there.

use super::dice::Dice;
use super::steps::SYNCS;
use super::world::World;
use super::world::chapters::SOON;

/// Prunes of a Sync do not wait for a broken Sync of the same repository whose files cannot hold the object.
const PRUNES_ALONE: bool = false;

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
            _ if PRUNES_ALONE => drop(world.removes(sync, 2)),
            _ => {}
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
