//! Downstream HTTP/1 and HTTP/2 connections.
