//! The requests in flight on a connection: which is on which stream, and where the load keeps it.
//!
//! A place is a number for a request, from its start until the load has counted it. Responses come in any
//! order, and the load's ring has no gaps: see [`Turn`].

use super::response::Response;
use crate::dialect::Turn;

/// A request in flight.
#[derive(Debug, Default)]
pub(super) struct Place<R> {
    /// Its stream; 0 if it has none any longer.
    pub stream: u32,
    /// Its exchange.
    pub exchange: u32,
    /// Number of requests before it on its connection.
    pub index: u32,
    /// What has arrived of its response.
    pub reply: R,
    /// Its position in the load's ring.
    position: u32,
}

/// All places of a connection.
#[derive(Debug)]
pub(super) struct Places<R> {
    places: Vec<Place<R>>,
    free: Vec<u32>,
    /// The place at each position of the load's ring.
    ring: Vec<u32>,
    /// The first position that is in use, and the next one.
    first: u32,
    next: u32,
}

impl<R: Response> Places<R> {
    /// For at most this many requests in flight.
    pub fn new(most: u32) -> Self {
        Places {
            places: (0..most).map(|_| Place::default()).collect(),
            free: (0..most).rev().collect(),
            ring: vec![0; most as usize],
            first: 0,
            next: 0,
        }
    }

    /// Number of requests that are in flight, or that the load has not counted yet.
    #[inline]
    pub fn used(&self) -> u32 {
        (self.places.len() - self.free.len()) as u32
    }

    /// The place of the next request to be started; `None` if all are in use.
    #[inline]
    pub fn next_free(&self) -> Option<u32> {
        self.free.last().copied()
    }

    /// Uses [`Places::next_free`] for a request.
    #[inline]
    pub fn start(&mut self, stream: u32, exchange: u32, index: u32) {
        let Some(place) = self.free.pop() else { return };
        let position = self.next;
        self.ring[position as usize] = place;
        self.next = self.after(position);
        let slot = &mut self.places[place as usize];
        (slot.stream, slot.exchange, slot.index) = (stream, exchange, index);
        slot.position = position;
    }

    /// The place of a stream, unless its request has ended.
    #[inline]
    pub fn get_mut(&mut self, place: u32, stream: u32) -> Option<&mut Place<R>> {
        self.places.get_mut(place as usize).filter(|slot| slot.stream == stream)
    }

    /// A place.
    pub fn get(&self, place: u32) -> &Place<R> {
        &self.places[place as usize]
    }

    /// The place at a position of the ring whose request is on a stream, and the stream.
    pub fn at(&self, position: u32) -> Option<(u32, u32)> {
        let place = *self.ring.get(position as usize)?;
        let slot = &self.places[place as usize];
        (slot.stream != 0 && slot.position == position).then_some((place, slot.stream))
    }

    /// The first request whose response has partly arrived.
    pub fn begun(&self) -> Option<&Place<R>> {
        self.places.iter().find(|slot| slot.stream != 0 && slot.reply.status() > 0)
    }

    /// The load counts the request of a place, which becomes free.
    #[inline]
    pub fn count(&mut self, place: u32) -> Turn {
        let (position, first) = (self.places[place as usize].position, self.first);
        let other = self.ring[first as usize];
        self.ring[position as usize] = other;
        self.places[other as usize].position = position;
        self.first = self.after(first);
        let slot = &mut self.places[place as usize];
        slot.stream = 0;
        slot.reply.clear();
        self.free.push(place);
        Turn { position, first }
    }

    #[inline]
    fn after(&self, position: u32) -> u32 {
        if position as usize + 1 == self.ring.len() { 0 } else { position + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::reply::Reply, *};

    #[test]
    fn requests_are_counted_in_any_order_and_the_ring_has_no_gap() {
        let mut places = Places::<Reply>::new(4);
        let mut ring: Vec<Option<u32>> = vec![None; 4];
        let (mut next, mut stream, mut open) = (0, 1, Vec::new());
        for step in 0_usize..200 {
            while let Some(place) = places.next_free() {
                places.start(stream, 0, 0);
                ring[next] = Some(stream);
                next = (next + 1) % 4;
                open.push((place, stream));
                stream += 2;
            }
            let (place, counted) = open.remove(step * 7 % open.len());
            assert!(places.get_mut(place, counted).is_some());
            let Turn { position, first } = places.count(place);
            ring.swap(position as usize, first as usize);
            assert_eq!(ring[first as usize].take(), Some(counted));
            assert!(places.get_mut(place, counted).is_none());
        }
    }
}
