//! Facts of a model beside its name: price, limits, abilities and strength.

use std::str::FromStr;

use gyrus_contract::{DEFAULT_IMAGE_TOKENS, Image, Price};
use serde::{Deserialize, Serialize};

/// Known facts about one model. An unknown fact is `None`, and nothing is guessed from it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelFacts {
    /// Price of the model's tokens.
    pub price: Option<Price>,
    /// Maximum tokens of a prompt and its reply together.
    pub window: Option<u64>,
    /// Maximum tokens of one reply.
    pub max_output_tokens: Option<u64>,
    /// The number of tokens of a picture.
    pub image_tokens: Option<ImageTokens>,
    /// Whether the model has native tool calls; otherwise calls are prompted.
    pub tools: Option<bool>,
    /// Whether the model accepts pictures.
    pub images: Option<bool>,
    /// Whether the model's replies can be bound to a schema.
    pub schema: Option<bool>,
    /// Whether the model is offered few tools, each reply being a call of one. By default that is
    /// so for windows of at most 16,384 tokens.
    pub few_tools: Option<bool>,
    /// Whether the model is offered its provider's own tool for screens. Only a person sets this:
    /// the benefit of such a tool has to be measured with a key.
    pub screen_tool: Option<bool>,
}

/// Size of a model within its provider's range, which is also the order of price and latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Models for short questions with a clear answer.
    Small,
    /// Models for the steps of a run.
    Medium,
    /// Models for plans and hard questions.
    Large,
}

impl Tier {
    /// Returns this tier, then its substitutes, best first: larger ones, then smaller ones.
    pub fn or_nearest(self) -> [Tier; 3] {
        match self {
            Tier::Small => [Tier::Small, Tier::Medium, Tier::Large],
            Tier::Medium => [Tier::Medium, Tier::Large, Tier::Small],
            Tier::Large => [Tier::Large, Tier::Medium, Tier::Small],
        }
    }

    /// Returns `small`, `medium` or `large`.
    pub fn word(self) -> &'static str {
        match self {
            Tier::Small => "small",
            Tier::Medium => "medium",
            Tier::Large => "large",
        }
    }
}

/// The error for a word that is not a [`Tier`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size of a model; write small, medium or large")]
pub struct UnknownTier(pub String);

impl FromStr for Tier {
    type Err = UnknownTier;
    fn from_str(word: &str) -> Result<Self, UnknownTier> {
        [Tier::Small, Tier::Medium, Tier::Large]
            .into_iter()
            .find(|tier| tier.word() == word)
            .ok_or_else(|| UnknownTier(word.to_owned()))
    }
}

/// The way in which a provider counts the tokens of a picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
pub enum ImageTokens {
    /// One token for each square, times a factor in thousandths.
    Patches {
        /// Side of a square, in pixels.
        side: u32,
        /// Factor in thousandths; 1000 means one token for each square.
        per_mille: u64,
        /// Maximum side in pixels; a longer one is scaled down before squares are counted.
        longest_side: u32,
        /// Maximum number of squares; a picture with more is scaled down to them.
        most: u64,
    },
    /// A base, and a number of tokens for each tile.
    Tiles {
        /// Tokens of the picture as a whole.
        base: u64,
        /// Number of tokens of each tile.
        tile: u64,
        /// Side of a tile, in pixels.
        side: u32,
    },
    /// This number of tokens for every picture.
    Each(u64),
}

impl ImageTokens {
    /// Returns the number of tokens of `image`.
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
                most,
            } => {
                let longest = width.max(height).max(1);
                let scaled = |length: u32| {
                    let kept = u64::from(length) * u64::from(longest_side.clamp(1, longest));
                    u32::try_from(kept.div_ceil(u64::from(longest))).unwrap_or(length)
                };
                let squares = squares(scaled(width), scaled(height), side).min(most);
                squares.saturating_mul(per_mille).div_ceil(1_000)
            }
            ImageTokens::Tiles { base, tile, side } => {
                base.saturating_add(tile.saturating_mul(squares(width, height, side)))
            }
            ImageTokens::Each(tokens) => tokens,
        }
    }
}

/// Largest window of a model that is offered few tools by default, in tokens.
const SMALL_WINDOW: u64 = 16_384;

impl ModelFacts {
    /// Whether the model is offered few tools.
    pub(crate) fn is_small(&self) -> bool {
        let has_small_window = || self.window.is_some_and(|window| window <= SMALL_WINDOW);
        self.few_tools.unwrap_or_else(has_small_window)
    }

    /// Returns the number of tokens of `image`, or the default estimate.
    pub fn image_tokens(&self, image: &Image) -> u64 {
        let formula = self.image_tokens.as_ref();
        formula.map_or(DEFAULT_IMAGE_TOKENS, |formula| formula.of(image))
    }
}

#[cfg(test)]
mod tests {
    use gyrus_contract::BlobId;

    use super::*;

    #[test]
    fn pictures_count_as_their_provider_says() {
        let check = |formula: ImageTokens, (width, height), expected| {
            let image = Image {
                blob: BlobId::of(b""),
                media_type: "image/png".into(),
                width,
                height,
            };
            assert_eq!(formula.of(&image), expected, "{formula:?} {width}x{height}");
        };
        let patches = |side, per_mille, longest_side, most| ImageTokens::Patches {
            side,
            per_mille,
            longest_side,
            most,
        };
        // The screens of the published tables, and one that is scaled down.
        check(patches(28, 1_000, 2_576, 4_784), (1280, 800), 1_334);
        check(patches(28, 1_000, 2_576, 4_784), (1920, 1080), 2_691);
        check(patches(28, 1_000, 1_568, 1_568), (1920, 1080), 1_568);
        check(patches(32, 1_200, 6_000, 10_000), (1920, 1080), 2_448);
        let tiles = ImageTokens::Tiles {
            base: 0,
            tile: 258,
            side: 768,
        };
        check(tiles.clone(), (1280, 800), 4 * 258);
        check(ImageTokens::Each(1_120), (9, 9), 1_120);
        // The arithmetic must not overflow.
        check(tiles, (u32::MAX, u32::MAX), 258 * 5_592_406 * 5_592_406);
        check(
            patches(1, u64::MAX, u32::MAX, u64::MAX),
            (u32::MAX, u32::MAX),
            u64::MAX.div_ceil(1_000),
        );
        check(patches(0, 1_000, 0, u64::MAX), (0, 0), 1);
    }
}
