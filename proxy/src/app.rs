//! Composition root: makes runtimes, registry, snapshot slot, listeners and admin, and hands each part its settings.
