//! What is known of a model beside its name: what it charges, takes and can do, and how strong it
//! is.

use std::str::FromStr;

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
    /// It is offered its provider's own tool for screens. Only a person says so: what such a tool
    /// brings has to be measured with a key.
    pub screen_tool: Option<bool>,
}

/// How strong a model is among its provider's, which is also how dear and how slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// For short questions with a clear answer.
    Small,
    /// For the steps of a run.
    Medium,
    /// For plans and hard questions.
    Large,
}

impl Tier {
    /// This tier, then those that stand in for it, best first: larger ones, then smaller ones.
    pub fn or_nearest(self) -> [Tier; 3] {
        match self {
            Tier::Small => [Tier::Small, Tier::Medium, Tier::Large],
            Tier::Medium => [Tier::Medium, Tier::Large, Tier::Small],
            Tier::Large => [Tier::Large, Tier::Medium, Tier::Small],
        }
    }

    /// `small`, `medium` or `large`.
    pub fn word(self) -> &'static str {
        match self {
            Tier::Small => "small",
            Tier::Medium => "medium",
            Tier::Large => "large",
        }
    }
}

/// A word that is no [`Tier`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no size of a model; write small, medium or large")]
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

/// How a provider counts the tokens of a picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
pub enum ImageTokens {
    /// One token for each square of so many pixels a side, times a factor in thousandths.
    Patches {
        /// The side of a square, in pixels.
        side: u32,
        /// 1000 for one token a square.
        per_mille: u64,
        /// A longer side is scaled down to this before squares are counted.
        longest_side: u32,
        /// The most squares; a picture with more is scaled down to them.
        most: u64,
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

impl Facts {
    /// What `image` counts as, or the usual guess.
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
        // Nothing overflows.
        check(tiles, (u32::MAX, u32::MAX), 258 * 5_592_406 * 5_592_406);
        check(
            patches(1, u64::MAX, u32::MAX, u64::MAX),
            (u32::MAX, u32::MAX),
            u64::MAX.div_ceil(1_000),
        );
        check(patches(0, 1_000, 0, u64::MAX), (0, 0), 1);
    }
}
