// The definitions of kinds that ours are compared with, pinned. Downloaded by
// `cargo xtask referees --crds`; nothing here ships, and no Go code of it is built.
module fleetwright.dev/tools/crds

go 1.26.0

require github.com/openshift/api v0.0.0-20251015095338-264e80a2b6e7
