//! The lists that a server gives in pages.

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams,
};

#[derive(Clone, Copy)]
pub(crate) struct PagedList {
    pub(crate) field: &'static str,
    pub(crate) request: fn(PaginatedRequestParams) -> ClientRequest,
}

pub(crate) const TOOLS: PagedList = PagedList {
    field: "tools",
    request: |params| ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params)),
};

pub(crate) const RESOURCES: PagedList = PagedList {
    field: "resources",
    request: |params| ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params)),
};

/// Templates of resources' addresses.
pub(crate) const TEMPLATES: PagedList = PagedList {
    field: "resourceTemplates",
    request: |params| {
        let request = ListResourceTemplatesRequest::with_param(params);
        ClientRequest::ListResourceTemplatesRequest(request)
    },
};

pub(crate) const PROMPTS: PagedList = PagedList {
    field: "prompts",
    request: |params| ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params)),
};
