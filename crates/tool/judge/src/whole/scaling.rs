//! The effect of more cores: cells of loads that differ only in cores, compared for each contender.

use crate::{
    compared::{comparison::Comparison, field::Field},
    statistics::{Series, known, paired},
};
use regatta_record::{Asked, Cell, Figure, LoadShape, Scaling};

/// Sets the ratio of every cell to the same contender at the same load with the fewest cores, if
/// there is such a load. Ratios are paired within passes, like those to the baseline; a void figure
/// has none.
pub(crate) fn scale(asked: &Asked, fields: &[Field], cells: &mut [Cell]) {
    for field in fields {
        let Some(fewest) = fewest(asked, fields, field) else { continue };
        let (from_cores, cores) = (cores(asked, &fewest.load), cores(asked, &field.load));
        let of_load = cells.iter_mut().filter(|cell| cell.load == field.load);
        for cell in of_load.filter(|cell| cell.rounds > 0) {
            let ratio = |figure: Figure, of: &dyn Fn(&Field) -> Option<Series>| {
                let trusted = |field: &Field| {
                    let observed = field.of(&cell.contender)?;
                    (!field.verdict(observed).voids(figure)).then(|| of(field)).flatten()
                };
                let ratio = Comparison::paired(&paired(&trusted(field)?, &trusted(fewest)?))?;
                known(Some(ratio.ratio()))
            };
            let name = &cell.contender;
            let cost = ratio(Figure::Cost, &|field| Some(field.of(name)?.cost.clone()));
            // A requested rate does not scale.
            let is_free = field.load.drive.rate().is_none();
            let rate = is_free
                .then(|| ratio(Figure::Rate, &|field| Some(field.of(name)?.rate.clone())))
                .flatten();
            cell.scaling = (cost.is_some() || rate.is_some()).then_some(Scaling {
                from_cores,
                cores,
                cost,
                rate,
            });
        }
    }
}

/// The load with the fewest cores that differs from `field`'s only in its cores, if it has fewer.
fn fewest<'a>(asked: &Asked, fields: &'a [Field], field: &Field) -> Option<&'a Field> {
    let without_cores = |load: &LoadShape| LoadShape { cores: None, ..*load };
    let alike =
        fields.iter().filter(|other| without_cores(&other.load) == without_cores(&field.load));
    let fewest = alike.min_by_key(|other| cores(asked, &other.load))?;
    (cores(asked, &fewest.load) < cores(asked, &field.load)).then_some(fewest)
}

/// Number of CPUs of the contender at a load.
fn cores(asked: &Asked, load: &LoadShape) -> u32 {
    asked.cpus.of_server(load).len() as u32
}
