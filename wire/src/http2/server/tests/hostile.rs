//! Peers that try to obtain bad service for themselves or for others.

use super::*;
use crate::http2::hpack::TABLE_BYTES_DEFAULT;
use crate::http2::hpack::decoder::Decoder;

#[test]
fn frames_in_flight_to_a_reset_stream_are_no_flood() {
    let mut server = greeted(SETTINGS);
    take(&mut server, &post(1)).unwrap();
    server.respond(0, StatusCode::FORBIDDEN, &HeaderMap::new(), true);
    server.reset(0, Reason::NO_ERROR);
    // small frames: all that the stream's window allowed before the peer received the reset
    let piece = frame(Kind::Data, 0, 1, &[0; 10]);
    for _ in 0..10_000 {
        assert!(take(&mut server, &piece).unwrap().is_empty());
    }
    take(&mut server, &get(3)).unwrap();
    // more than the window allowed
    let end = take(&mut server, &piece);
    assert_eq!(end.unwrap_err(), Reason::FLOW_CONTROL_ERROR);
}

#[test]
fn empty_frames_to_a_reset_stream_are_a_flood() {
    let mut server = greeted(SETTINGS);
    take(&mut server, &post(1)).unwrap();
    server.reset(0, Reason::NO_ERROR);
    let empty = frame(Kind::Data, 0, 1, &[]);
    let end = (0..10_000).find_map(|_| take(&mut server, &empty).err());
    assert_eq!(end, Some(Reason::ENHANCE_YOUR_CALM));
}

#[test]
fn peer_that_never_acknowledges_settings_is_closed() {
    let mut server = Server::new(SETTINGS, 64 * 1024);
    take(&mut server, PREFACE).unwrap();
    take(&mut server, &frame(Kind::Settings, 0, 0, &[])).unwrap();
    for stream in 0..4 {
        take(&mut server, &get(2 * stream + 1)).unwrap();
    }
    let end = (4..10_000).find_map(|stream| take(&mut server, &get(2 * stream + 1)).err());
    assert_eq!(end, Some(Reason::ENHANCE_YOUR_CALM));
}

#[test]
fn table_that_shrinks_and_grows_in_one_settings_frame_is_emptied() {
    let mut server = greeted(SETTINGS);
    let mut headers = HeaderMap::new();
    headers.insert("x-same", "value".parse().unwrap());
    let mut decoder = Decoder::new(TABLE_BYTES_DEFAULT);
    let mut answer = |server: &mut Server, stream| {
        take(server, &get(stream)).unwrap();
        server.respond(0, StatusCode::OK, &headers, true);
        let mut said = said(server);
        let (kind, _, _, block) = said.pop().unwrap();
        assert_eq!(kind, Kind::Headers);
        let mut builder = Builder::trailers(1000);
        decoder.decode(&block, &mut builder).unwrap();
        block
    };
    for stream in [1, 3] {
        answer(&mut server, stream);
    }
    let named = answer(&mut server, 5);
    assert_eq!(named.len(), 2, "by its entry");
    let pairs = [0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0x10, 0];
    take(&mut server, &frame(Kind::Settings, 0, 0, &pairs)).unwrap();
    // sizes 0, then 4096 (RFC 7541, section 4.2): the table is empty
    let block = answer(&mut server, 7);
    assert_eq!(block[..4], [0x20, 0x3f, 0xe1, 0x1f]);
    assert!(block.len() > 4 + 2);
}
