//! The picture of a screen: the server writes its pixels into memory that both sides share.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{MemfdFlags, ftruncate, memfd_create},
    io::pread,
};
use x11rb::{
    connection::Connection as _,
    protocol::{
        shm::ConnectionExt as _,
        xproto::{ImageFormat, ImageOrder},
    },
};

use super::display::{Display, DisplayError};
use crate::view::Pixels;

impl Display {
    /// Captures the whole screen.
    pub(super) fn capture(&self) -> Result<Pixels, DisplayError> {
        let (width, height) = self.size()?;
        let bytes = self.pixels(width, height)?;
        let order = self.connection.setup().image_byte_order;
        if order != ImageOrder::LSB_FIRST || self.screen.root_depth < 24 {
            return Err(format!(
                "the display has {} bits a pixel in an order that is not read",
                self.screen.root_depth
            ));
        }
        let mut rgb = Vec::with_capacity(bytes.len() / 4 * 3);
        for pixel in bytes.chunks_exact(4) {
            rgb.extend_from_slice(&[pixel[2], pixel[1], pixel[0]]);
        }
        Ok(Pixels::rgb(u32::from(width), u32::from(height), rgb))
    }

    /// Returns the pixels of the screen, four bytes each.
    fn pixels(&self, width: u16, height: u16) -> Result<Vec<u8>, DisplayError> {
        let size = usize::from(width) * usize::from(height) * 4;
        let words =
            |error: &dyn std::fmt::Display| format!("the screen cannot be captured: {error}");
        let memory: OwnedFd =
            memfd_create("gyrus-capture", MemfdFlags::CLOEXEC).map_err(|error| words(&error))?;
        ftruncate(&memory, size as u64).map_err(|error| words(&error))?;
        let segment = self
            .connection
            .generate_id()
            .map_err(|error| words(&error))?;
        let for_server = memory.try_clone().map_err(|error| words(&error))?;
        self.connection
            .shm_attach_fd(segment, for_server, false)
            .map_err(|error| words(&error))?;
        let captured = self
            .connection
            .shm_get_image(
                self.screen.root,
                0,
                0,
                width,
                height,
                !0,
                ImageFormat::Z_PIXMAP.into(),
                segment,
                0,
            )
            .map_err(|error| words(&error))?
            .reply();
        self.connection
            .shm_detach(segment)
            .map_err(|error| words(&error))?;
        captured.map_err(|error| words(&error))?;
        let mut bytes = vec![0; size];
        let mut read = 0;
        while read < size {
            match pread(&memory, &mut bytes[read..], read as u64) {
                Ok(0) => return Err(words(&"its memory is too short")),
                Ok(count) => read += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(words(&error)),
            }
        }
        Ok(bytes)
    }
}
