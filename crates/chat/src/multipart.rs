//! Bodies of requests that carry files (`multipart/form-data`, RFC 7578).

pub(crate) struct Multipart {
    boundary: String,
    bytes: Vec<u8>,
}

impl Multipart {
    pub(crate) fn new() -> Self {
        // It is random, so no file contains it.
        let boundary = gyrus_contract::time_ordered_uuid();
        Self {
            boundary: format!("gyrus-{boundary}"),
            bytes: Vec::new(),
        }
    }

    pub(crate) fn field(mut self, name: &str, value: &str) -> Self {
        self.part(&format!("name=\"{name}\""), "", value.as_bytes());
        self
    }

    pub(crate) fn file(mut self, name: &str, file: &str, media_type: &str, bytes: &[u8]) -> Self {
        let file: String = file
            .chars()
            .map(|sign| {
                if sign.is_control() || sign == '"' || sign == '\\' {
                    '_'
                } else {
                    sign
                }
            })
            .collect();
        let head = format!("name=\"{name}\"; filename=\"{file}\"");
        self.part(&head, &format!("Content-Type: {media_type}\r\n"), bytes);
        self
    }

    fn part(&mut self, head: &str, more: &str, bytes: &[u8]) {
        let boundary = &self.boundary;
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; {head}\r\n{more}\r\n");
        self.bytes.extend_from_slice(head.as_bytes());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(crate) fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={}", self.boundary)
    }

    pub(crate) fn bytes(mut self) -> Vec<u8> {
        let end = format!("--{}--\r\n", self.boundary);
        self.bytes.extend_from_slice(end.as_bytes());
        self.bytes
    }
}
