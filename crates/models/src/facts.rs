//! What is known of a model beside its name: what it charges, takes and can do.

use gyrus_contract::{DEFAULT_IMAGE_TOKENS, Image, Price};
use serde::{Deserialize, Serialize};

/// What is known of one model. What is not known is `None`, and nothing is guessed from it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Facts {
    /// What it charges.
    pub price: Option<Price>,
    /// How many tokens a prompt and its reply may have together.
    pub window: Option<u64>,
    /// The most it writes in one reply, in tokens.
    pub max_output_tokens: Option<u64>,
    /// What a picture counts as.
    pub image_tokens: Option<ImageTokens>,
    /// It calls tools by itself; one that does not is driven by prompted calls.
    pub tools: Option<bool>,
    /// It sees pictures.
    pub images: Option<bool>,
    /// Its replies can be bound to a schema.
    pub schema: Option<bool>,
}

/// How a provider counts the tokens of a picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageTokens {
    /// One token for each square of so many pixels a side, times a factor in thousandths.
    Patches {
        /// The side of a square, in pixels.
        side: u32,
        /// 1000 for one token a square.
        per_mille: u64,
        /// A longer side is scaled down to this before squares are counted.
        longest_side: u32,
    },
    /// A base, and so many tokens for each tile.
    Tiles {
        /// For the picture as a whole.
        base: u64,
        /// For each tile.
        tile: u64,
        /// The side of a tile, in pixels.
        side: u32,
    },
    /// The same for every picture.
    Each(u64),
}

impl ImageTokens {
    /// What `image` counts as.
    pub fn of(&self, image: &Image) -> u64 {
        let (width, height) = (image.width.max(1), image.height.max(1));
        let squares = |width: u32, height: u32, side: u32| {
            let side = side.max(1);
            u64::from(width.div_ceil(side)) * u64::from(height.div_ceil(side))
        };
        match *self {
            ImageTokens::Patches {
                side,
                per_mille,
                longest_side,
            } => {
                let longest = width.max(height).max(1);
                let scaled = |length: u32| {
                    let kept = u64::from(length) * u64::from(longest_side.min(longest));
                    u32::try_from(kept.div_ceil(u64::from(longest))).unwrap_or(length)
                };
                (squares(scaled(width), scaled(height), side) * per_mille).div_ceil(1_000)
            }
            ImageTokens::Tiles { base, tile, side } => base + tile * squares(width, height, side),
            ImageTokens::Each(tokens) => tokens,
        }
    }
}

impl Facts {
    /// What `image` counts as, or the usual guess.
    pub fn image_tokens(&self, image: &Image) -> u64 {
        let formula = self.image_tokens.as_ref();
        formula.map_or(DEFAULT_IMAGE_TOKENS, |formula| formula.of(image))
    }
}
