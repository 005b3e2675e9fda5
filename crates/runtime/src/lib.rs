//! Informers, work queues, controllers and what else a controller process needs.
