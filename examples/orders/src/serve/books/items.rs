//! The stock of all items.

use std::collections::HashMap;

use order_reconciliation::rules::Item;

use super::Stock;

pub(super) struct Items {
    /// The number of an item in `items`.
    numbers: HashMap<String, u32>,
    items: Vec<(String, Item)>,
    /// Units of each item.
    stock: u64,
}

impl Items {
    pub(super) fn new(stock: u64) -> Self {
        Self { numbers: HashMap::new(), items: Vec::new(), stock }
    }

    /// An item's number, which is new if need be.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.items.len() as u32;
        self.items.push((name.to_owned(), Item { stock: self.stock, ..Item::default() }));
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub(super) fn name(&self, number: u32) -> &str {
        &self.items[number as usize].0
    }

    pub(super) fn at(&mut self, number: u32) -> &mut Item {
        &mut self.items[number as usize].1
    }

    pub(super) fn named(&mut self, name: &str) -> &mut Item {
        let number = self.number(name);
        self.at(number)
    }

    /// Reserves units of an item. An item of which nothing was ever sold takes no memory.
    pub(super) fn reserve(&mut self, name: &str, quantity: u32) -> Option<u32> {
        if u64::from(quantity) > self.stock && !self.numbers.contains_key(name) {
            return None;
        }
        let number = self.number(name);
        self.at(number).reserve(quantity).then_some(number)
    }

    pub(super) fn stock(&self, name: &str) -> Stock {
        let item = self.numbers.get(name).map(|&number| self.items[number as usize].1);
        let Item { stock, reserved, sold, .. } =
            item.unwrap_or(Item { stock: self.stock, ..Item::default() });
        Stock { stock, reserved, sold }
    }

    /// An item's name, and its units sold.
    pub(super) fn sold(&self, number: u32) -> (String, u64) {
        let (name, item) = &self.items[number as usize];
        (name.clone(), item.sold)
    }

    /// The same of all items.
    pub(super) fn all_sold(&self) -> impl Iterator<Item = (String, u64)> {
        (0..self.items.len() as u32).map(|number| self.sold(number)).filter(|(_, units)| *units > 0)
    }
}
