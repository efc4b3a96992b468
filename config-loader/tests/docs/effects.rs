//! Tests that show the effect of each field on traffic.
//!
//! A line has a field, and a test in `proxy/tests/it` by module and name. It applies to all parts of its field, unless
//! a longer line names the part. `accepted` marks fields that nothing uses, `untested` those whose effect no test
//! shows.

/// Fields and tests, below `# KIND GROUP`. Lines for `spec.trafficPolicy` of a DestinationRule also apply to policies
/// of subsets and ports: `compile::tests::fields` of the proxy checks each field there.
pub(crate) const EFFECTS: &str = "
# DestinationRule networking.istio.io
spec.host destination_rules::t91_less_specific_rule_fills_no_gap
spec.trafficPolicy.loadBalancer.simple destination_rules::t120_idle_endpoints_get_requests_by_weight
spec.trafficPolicy.loadBalancer.consistentHash balancing::requests_with_the_same_key_go_to_the_same_endpoint
spec.trafficPolicy.loadBalancer.consistentHash.httpCookie balancing::t98_t99_cookie_is_issued_when_it_has_a_lifetime
spec.trafficPolicy.loadBalancer.consistentHash.ringHash destination_rules::t100_hash_keys_pick_the_specified_endpoints
spec.trafficPolicy.loadBalancer.consistentHash.maglev destination_rules::t100_hash_keys_pick_the_specified_endpoints
spec.trafficPolicy.loadBalancer.consistentHash.minimumRingSize destination_rules::t100_hash_keys_pick_the_specified_endpoints
spec.trafficPolicy.loadBalancer.localityLbSetting.distribute balancing::t111_traffic_follows_the_locality_distribution
spec.trafficPolicy.loadBalancer.localityLbSetting.failover balancing::locality_failover_works_when_a_region_has_no_endpoints_left
spec.trafficPolicy.loadBalancer.localityLbSetting.failoverPriority ejections::t112_failover_priority_network_orders_before_region
spec.trafficPolicy.loadBalancer.localityLbSetting.enabled balancing::disabled_locality_settings_ignore_zones
spec.trafficPolicy.loadBalancer.zoneAwareLbSetting resilience::zone_aware_routing_keeps_the_local_share_in_the_local_zone
spec.trafficPolicy.loadBalancer.zoneAwareLbSetting.failover effects::zone_aware_failover_says_which_region_takes_over
spec.trafficPolicy.loadBalancer.zoneAwareLbSetting.failoverPriority effects::network_of_workload_entries_orders_failover
spec.trafficPolicy.loadBalancer.warmup ejections::t121_new_endpoint_warms_up
spec.trafficPolicy.loadBalancer.warmup.aggression ejections::aggression_bends_the_warmup
spec.trafficPolicy.loadBalancer.warmupDurationSecs ejections::warmup_duration_secs_warms_up_like_warmup_duration
spec.trafficPolicy.connectionPool.tcp.maxConnections connection_pools::t113_with_one_connection_and_one_pending_the_third_request_overflows
spec.trafficPolicy.connectionPool.tcp.connectTimeout effects::connecting_ends_at_connect_timeout
spec.trafficPolicy.connectionPool.tcp.tcpKeepalive balancing::tcp_keepalive_probes_idle_connections
spec.trafficPolicy.connectionPool.tcp.maxConnectionDuration connection_pools::connection_is_not_used_past_max_connection_duration
spec.trafficPolicy.connectionPool.tcp.idleTimeout tcp::connection_past_its_idle_timeout_is_reset_on_both_sides
spec.trafficPolicy.connectionPool.http.http1MaxPendingRequests connection_pools::t113_with_one_connection_and_one_pending_the_third_request_overflows
spec.trafficPolicy.connectionPool.http.http2MaxRequests connection_pools::limits_hold_exactly_over_all_workers_and_leak_nothing
spec.trafficPolicy.connectionPool.http.maxRequestsPerConnection connection_pools::t116_connection_is_closed_after_max_requests_per_connection
spec.trafficPolicy.connectionPool.http.maxRetries retries::max_retries_limits_the_retries_at_one_time
spec.trafficPolicy.connectionPool.http.idleTimeout connection_pools::connection_past_its_idle_timeout_is_not_reused
spec.trafficPolicy.connectionPool.http.h2UpgradePolicy connection_pools::t119_h2_upgrade_policy_upgrades_requests_to_http2
spec.trafficPolicy.connectionPool.http.useClientProtocol connection_pools::use_client_protocol_keeps_the_protocol_of_the_client
spec.trafficPolicy.connectionPool.http.maxConcurrentStreams upstream_http2::policy_limits_streams_and_requests_per_connection
spec.trafficPolicy.connectionPool.http.http2KeepAlive upstream_http2_frames::http2_keep_alive_pings_and_closes_silent_endpoints
spec.trafficPolicy.outlierDetection.consecutiveErrors accepted
spec.trafficPolicy.outlierDetection.splitExternalLocalOriginErrors ejections::split_local_origin_errors_have_their_own_count
spec.trafficPolicy.outlierDetection.consecutiveLocalOriginFailures ejections::split_local_origin_errors_have_their_own_count
spec.trafficPolicy.outlierDetection.consecutiveGatewayErrors ejections::t105_gateway_errors_have_their_own_count
spec.trafficPolicy.outlierDetection.consecutive5xxErrors balancing::t101_failing_endpoint_is_ejected_and_unejected
spec.trafficPolicy.outlierDetection.interval ejections::t102_second_ejection_is_twice_as_long
spec.trafficPolicy.outlierDetection.baseEjectionTime ejections::t102_second_ejection_is_twice_as_long
spec.trafficPolicy.outlierDetection.maxEjectionPercent balancing::t106_t107_ejecting_all_endpoints_gives_503_or_panic_mode
spec.trafficPolicy.outlierDetection.minHealthPercent balancing::t106_t107_ejecting_all_endpoints_gives_503_or_panic_mode
spec.trafficPolicy.outlierDetection.outlierDetectionHttpErrorCodes ejections::listed_status_codes_replace_5xx_as_errors
spec.trafficPolicy.tls upstream_tls::server_certificate_is_verified_by_the_destination_rule
spec.trafficPolicy.tls.mode upstream_tls::tls_origination_uses_the_host_as_sni
spec.trafficPolicy.tls.clientCertificate upstream_tls::client_certificates_come_from_files_and_secrets
spec.trafficPolicy.tls.privateKey upstream_tls::client_certificates_come_from_files_and_secrets
spec.trafficPolicy.tls.credentialName upstream_tls::client_certificates_come_from_files_and_secrets
spec.trafficPolicy.tunnel tunnels::connect_tunnel_carries_raw_bytes
spec.trafficPolicy.tunnel.protocol tunnels::post_tunnel_carries_bytes_in_bodies
spec.trafficPolicy.proxyProtocol proxy_protocol::tcp_endpoint_gets_a_proxy_protocol_header
spec.trafficPolicy.retryBudget retries::retry_budget_counts_completed_requests_of_its_interval
spec.trafficPolicy.portLevelSettings[].port destination_rules::t94_settings_of_a_port_inherit_nothing
spec.subsets[].name routing::first_matching_rule_in_order_wins
spec.subsets[].labels routing::first_matching_rule_in_order_wins
spec.exportTo destination_rules::t92_rule_in_the_client_namespace_replaces_all_others
spec.workloadSelector destination_rules::rule_with_a_workload_selector_applies_to_those_workloads_only

# BackendTLSPolicy gateway.networking.k8s.io
spec.targetRefs gateway_api::backend_tls::backend_is_verified_by_authority_and_name
spec.targetRefs[].sectionName gateway_api::backend_tls::policy_of_a_port_comes_before_that_of_the_service_and_older_ones_before_younger_ones
spec.validation gateway_api::backend_tls::backend_is_verified_by_authority_and_name
spec.validation.caCertificateRefs gateway_api::backend_tls::backend_whose_policy_has_no_ca_answers_500_and_gets_nothing
spec.validation.wellKnownCACertificates untested
spec.validation.hostname gateway_api::backend_tls::backend_gets_the_hostname_as_sni_and_the_protocol_that_it_speaks
spec.options accepted

# GatewayClass gateway.networking.k8s.io
spec untested
spec.controllerName gateway_api::listener_of_an_istio_gateway_and_classes_of_others_keep_their_traffic

# Gateway gateway.networking.k8s.io
spec accepted
spec.gatewayClassName gateway_api::listener_of_an_istio_gateway_and_classes_of_others_keep_their_traffic
spec.addresses gateway_api::matches_are_tried_by_precedence_over_all_routes_of_a_host
spec.allowedListeners untested
spec.allowedListeners.namespaces.from gateway_api::listener_sets_add_listeners_for_the_namespaces_that_they_allow
spec.listeners[] untested
spec.listeners[].name gateway_api::a_host_belongs_to_the_most_specific_listener
spec.listeners[].hostname gateway_api::a_host_belongs_to_the_most_specific_listener
spec.listeners[].port gateway_api::a_host_belongs_to_the_most_specific_listener
spec.listeners[].protocol gateway_api::request_for_a_host_of_another_https_listener_is_misdirected
spec.listeners[].tls.certificateRefs gateway_api::request_for_a_host_of_another_https_listener_is_misdirected
spec.listeners[].tls.mode gateway_api::tls_routes::listeners_of_a_port_are_isolated_by_sni_in_all_modes
spec.listeners[].tls.options gateway_api::listener_tls::options_of_a_listener_are_followed
spec.tls.frontend.default gateway_api::listener_tls::reference_to_an_authority_that_does_not_hold_closes_https_and_not_http
spec.tls.frontend.perPort gateway_api::listener_tls::gateway_validates_client_certificates
spec.tls.frontend.default.validation.mode gateway_api::listener_tls::fallback_serves_every_client_and_forwards_only_valid_certificates
spec.tls.backend.clientCertificateRef gateway_api::backend_tls::gateway_shows_its_certificate_to_backends_with_a_policy

# ListenerSet gateway.networking.k8s.io
spec untested
spec.parentRef gateway_api::listener_sets_add_listeners_for_the_namespaces_that_they_allow
spec.listeners[].name gateway_api::listener_sets_add_listeners_for_the_namespaces_that_they_allow
spec.listeners[].hostname gateway_api::listener_sets_add_listeners_for_the_namespaces_that_they_allow
spec.listeners[].allowedRoutes.namespaces.from gateway_api::listener_sets_add_listeners_for_the_namespaces_that_they_allow

# HTTPRoute gateway.networking.k8s.io
spec accepted
spec.parentRefs gateway_api::a_host_belongs_to_the_most_specific_listener
spec.parentRefs[].port sidecar::service_routes::port_of_a_parent_limits_a_route_to_it
spec.hostnames gateway_api::matches_are_tried_by_precedence_over_all_routes_of_a_host
spec.rules[].name untested
spec.rules[].matches gateway_api::matches_are_tried_by_precedence_over_all_routes_of_a_host
spec.rules[].matches[].method gateway_api::rules_limit_retry_and_share
spec.rules[].matches[].path gateway_api::paths::prefixes_end_at_a_segment_and_exact_paths_at_their_end
spec.rules[].matches[].headers gateway_api::header_lines::lines_of_a_header_are_joined_before_they_are_matched
spec.rules[].matches[].queryParams gateway_api::rules_limit_retry_and_share
spec.rules[].filters gateway_api::filters_change_requests_and_responses
spec.rules[].filters[].requestMirror.percent gateway_api::backend_filters::mirrors_are_drawn_one_by_one_by_percent_or_fraction
spec.rules[].filters[].requestMirror.fraction gateway_api::backend_filters::mirrors_are_drawn_one_by_one_by_percent_or_fraction
spec.rules[].filters[].cors gateway_api::cors::with_credentials_no_wildcard_is_sent
spec.rules[].filters[].cors.allowOrigins gateway_api::cors::origins_are_compared_by_scheme_host_and_port
spec.rules[].filters[].cors.maxAge gateway_api::rules_limit_retry_and_share
spec.rules[].filters[].extensionRef gateway_api::backends_that_are_not_valid_answer_500_and_those_without_endpoints_503
spec.rules[].filters[].externalAuth accepted
spec.rules[].backendRefs gateway_api::backends_that_are_not_valid_answer_500_and_those_without_endpoints_503
spec.rules[].backendRefs[].filters gateway_api::backend_filters::filters_of_a_backend_apply_to_its_share_alone
spec.rules[].backendRefs[].filters[].requestMirror gateway_api::backend_filters::mirror_of_a_backend_copies_its_share_alone
spec.rules[].backendRefs[].filters[].requestMirror.percent untested
spec.rules[].backendRefs[].filters[].requestMirror.fraction untested
spec.rules[].backendRefs[].filters[].cors accepted
spec.rules[].backendRefs[].filters[].externalAuth accepted
spec.rules[].backendRefs[].filters[].extensionRef gateway_api::backend_filters::filters_of_the_only_backend_follow_those_of_the_rule
spec.rules[].backendRefs[].filters[].requestHeaderModifier gateway_api::filters_change_requests_and_responses
spec.rules[].backendRefs[].filters[].responseHeaderModifier untested
spec.rules[].timeouts gateway_api::rules_limit_retry_and_share
spec.rules[].retry gateway_api::rules_limit_retry_and_share

# GRPCRoute gateway.networking.k8s.io
spec accepted
spec.parentRefs gateway_api::grpc_routes::hosts_of_listeners_select_the_routes_of_calls
spec.parentRefs[].port untested
spec.hostnames gateway_api::grpc_routes::calls_and_requests_are_matched_with_one_list
spec.rules[].name untested
spec.rules[].matches gateway_api::grpc_routes::calls_are_matched_by_service_method_and_metadata
spec.rules[].filters gateway_api::grpc_routes::filters_edit_metadata_and_copy_calls
spec.rules[].filters[].requestMirror.percent untested
spec.rules[].filters[].requestMirror.fraction untested
spec.rules[].filters[].extensionRef gateway_api::grpc_routes::backends_that_are_not_valid_are_unavailable
spec.rules[].backendRefs gateway_api::grpc_routes::backends_that_are_not_valid_are_unavailable
spec.rules[].backendRefs[].filters untested

# TLSRoute gateway.networking.k8s.io
spec accepted
spec.parentRefs gateway_api::tls_routes::listeners_of_a_port_are_isolated_by_sni_in_all_modes
spec.parentRefs[].port untested
spec.hostnames gateway_api::tls_routes::hosts_of_listener_and_route_intersect
spec.rules[].name untested
spec.rules[].backendRefs gateway_api::tls_routes::connections_without_a_destination_end_before_tls_in_both_modes

# TCPRoute gateway.networking.k8s.io
spec accepted
spec.parentRefs gateway_api::tcp_routes::routes_attach_to_listeners_by_section_and_port
spec.rules[].name untested
spec.rules[].backendRefs gateway_api::tcp_routes::connections_are_shared_by_weight_and_invalid_shares_are_closed

# ReferenceGrant gateway.networking.k8s.io
spec gateway_api::backends_that_are_not_valid_answer_500_and_those_without_endpoints_503

# Gateway networking.istio.io
spec.servers[].port listeners::keep_alive_connection_serves_several_requests
spec.servers[].port.name multicluster::exports_tls::the_servers_for_remote_clusters_can_be_selected_by_name
spec.servers[].port.protocol passthrough::passthrough_routes_by_sni_without_terminating_tls
spec.servers[].bind unix_listener::listener_on_a_unix_path_creates_and_removes_its_file
spec.servers[].hosts tls_names::host_of_another_server_gets_421_on_http2_and_404_on_http1
spec.servers[].name untested
spec.servers[].tls.httpsRedirect tls_names::http_server_redirects_to_https
spec.servers[].tls.mode tls_clients::mutual_accepts_certificates_of_the_authority
spec.servers[].tls.serverCertificate tls_reload::changed_certificate_files_are_reloaded_and_connections_stay_open
spec.servers[].tls.privateKey tls_reload::changed_certificate_files_are_reloaded_and_connections_stay_open
spec.servers[].tls.caCertificates multicluster::exports_tls::a_gateway_serves_remote_clusters_over_mutual_tls
spec.servers[].tls.caCrl tls_clients::several_certificates_and_a_revocation_list_can_come_from_files
spec.servers[].tls.credentialName tls_names::request_over_tls_reaches_its_origin
spec.servers[].tls.credentialNames tls_versions::client_gets_the_certificate_type_it_supports
spec.servers[].tls.tlsCertificates tls_clients::several_certificates_and_a_revocation_list_can_come_from_files
spec.servers[].tls.caCertCredentialName tls_clients::ca_certificate_can_come_from_its_own_secret
spec.servers[].tls.subjectAltNames tls_clients::subject_alt_names_limit_the_accepted_certificates
spec.servers[].tls.verifyCertificateSpki tls_clients::certificate_in_either_pin_list_is_accepted
spec.servers[].tls.verifyCertificateHash tls_clients::certificate_in_either_pin_list_is_accepted
spec.servers[].tls.minProtocolVersion tls_versions::tls_versions_follow_the_server_settings
spec.servers[].tls.maxProtocolVersion tls_versions::tls_versions_follow_the_server_settings
spec.servers[].tls.cipherSuites tls_versions::cipher_suites_apply_to_tls_1_2_only
spec.servers[].tls.ecdhCurves tls_versions::unsupported_curve_is_reported
spec.servers[].tls.insecureSkipVerify tls_clients::insecure_skip_verify_accepts_any_certificate
spec.selector startup::gateway_for_other_proxies_is_reported_when_nothing_listens

# PeerAuthentication security.istio.io
spec.selector peer_authentication::strict_workload_takes_tls_of_the_mesh_only
spec.mtls peer_authentication::changed_mode_is_followed_and_a_port_has_its_own
spec.portLevelMtls peer_authentication::changed_mode_is_followed_and_a_port_has_its_own

# AuthorizationPolicy security.istio.io
spec.selector authorization::shapes::policies_apply_to_what_they_select
spec.targetRef authorization::shapes::policies_apply_to_what_they_select
spec.targetRefs gateway_api::policies::policy_applies_to_the_listeners_of_its_gateway_only
spec.action authorization::shapes::actions_decide_in_their_order
spec.provider authorization::shapes::policy_with_an_unknown_provider_denies_what_it_selects
spec.rules[].from authorization::identity::identities_are_those_that_the_handshake_has_proved
spec.rules[].from[].source.ipBlocks authorization::fields::addresses_are_those_of_the_peer_and_of_the_client_by_trusted_hops
spec.rules[].from[].source.notIpBlocks authorization::fields::addresses_are_those_of_the_peer_and_of_the_client_by_trusted_hops
spec.rules[].from[].source.remoteIpBlocks authorization::fields::addresses_are_those_of_the_peer_and_of_the_client_by_trusted_hops
spec.rules[].from[].source.notRemoteIpBlocks authorization::fields::addresses_are_those_of_the_peer_and_of_the_client_by_trusted_hops
spec.rules[].from[].source.requestPrincipals request_authentication::tokens::policies_see_the_claims_of_a_valid_token
spec.rules[].from[].source.notRequestPrincipals request_authentication::tokens::policies_see_the_claims_of_a_valid_token
spec.rules[].to authorization::fields::methods_are_compared_with_their_case
spec.rules[].to[].operation.hosts authorization::fields::hosts_are_compared_as_sent_and_denied_ones_also_without_port_and_dot
spec.rules[].to[].operation.notHosts authorization::fields::hosts_are_compared_as_sent_and_denied_ones_also_without_port_and_dot
spec.rules[].to[].operation.ports authorization::fields::addresses_are_those_of_the_peer_and_of_the_client_by_trusted_hops
spec.rules[].to[].operation.notPorts authorization::fields::addresses_are_those_of_the_peer_and_of_the_client_by_trusted_hops
spec.rules[].to[].operation.paths authorization::paths::denied_path_is_denied_in_every_spelling_that_reaches_it
spec.rules[].to[].operation.notPaths authorization::paths::allowed_paths_admit_no_others
spec.rules[].when authorization::fields::headers_are_compared_line_by_line

# ConfigMap core
data accepted

# Ingress networking.k8s.io
spec ingress::hosts_are_exact_or_have_one_label_more
spec.ingressClassName ingress::paths_match_as_kubernetes_has_them
spec.defaultBackend ingress::hosts_are_exact_or_have_one_label_more
spec.tls ingress::hosts_are_served_over_tls_by_their_secrets
spec.rules[].host ingress::hosts_are_exact_or_have_one_label_more
spec.rules[].http ingress::paths_match_as_kubernetes_has_them

# IngressClass networking.k8s.io
spec untested
spec.parameters accepted

# BackendTrafficPolicy gateway.envoyproxy.io
spec.targetRef rate_limits::targets::one_target_is_enough
spec.targetRefs rate_limits::targets::most_specific_policy_applies
spec.rateLimit.local.rules[].clientSelectors rate_limits::conditions_select_requests
spec.rateLimit.local.rules[].clientSelectors[].sourceCIDR rate_limits::each_address_has_a_limit_of_its_own
spec.rateLimit.local.rules[].clientSelectors[].headers rate_limits::values_of_headers_have_limits_of_their_own
spec.rateLimit.local.rules[].limit rate_limits::limit_is_exact_over_all_workers
spec.rateLimit.local.rules[].cost.request rate_limits::cost_and_shadow_mode_of_rules
spec.rateLimit.local.rules[].shared rate_limits::targets::routes_of_a_gateway_have_limits_of_their_own_unless_shared
spec.rateLimit.local.rules[].shadowMode rate_limits::cost_and_shadow_mode_of_rules
spec.rateLimit.global.rules[].clientSelectors rate_limits::service::service_is_told_of_all_rules_that_select_a_request
spec.rateLimit.global.rules[].limit rate_limits::service::service_is_told_of_all_rules_that_select_a_request
spec.rateLimit.global.rules[].cost.request rate_limits::service::service_is_told_of_all_rules_that_select_a_request
spec.rateLimit.global.rules[].shared rate_limits::service::service_is_told_of_all_rules_that_select_a_request
spec.rateLimit.global.rules[].shadowMode rate_limits::service::rule_in_shadow_mode_refuses_nothing
spec.requestBuffer.limit rate_limits::bodies::bodies_are_limited

# ProxyConfig networking.istio.io
spec.selector mesh_config::proxies::number_of_workers_is_that_of_the_narrowest_resource
spec.concurrency mesh_config::proxies::number_of_workers_is_that_of_the_narrowest_resource
spec.environmentVariables mesh_config::proxies::variables_of_a_proxy_config_are_those_of_its_environment

# RequestAuthentication security.istio.io
spec.selector request_authentication::tokens::policy_that_was_never_valid_refuses_tokens_only
spec.targetRef untested
spec.targetRefs gateway_api::policies::tokens_are_verified_at_the_gateway_of_their_policy
spec.jwtRules[].issuer request_authentication::tokens::request_without_token_goes_on_and_a_bad_token_is_refused
spec.jwtRules[].audiences request_authentication::tokens::request_without_token_goes_on_and_a_bad_token_is_refused
spec.jwtRules[].jwksUri request_authentication::key_servers::keys_are_fetched_before_the_proxy_is_ready
spec.jwtRules[].jwks request_authentication::tokens::request_without_token_goes_on_and_a_bad_token_is_refused
spec.jwtRules[].fromHeaders request_authentication::tokens::tokens_are_found_at_their_locations_and_all_must_be_valid
spec.jwtRules[].fromParams request_authentication::tokens::tokens_are_found_at_their_locations_and_all_must_be_valid
spec.jwtRules[].fromCookies request_authentication::tokens::tokens_are_found_at_their_locations_and_all_must_be_valid
spec.jwtRules[].outputPayloadToHeader request_authentication::outputs::claims_become_headers_that_clients_cannot_send
spec.jwtRules[].forwardOriginalToken request_authentication::outputs::claims_become_headers_that_clients_cannot_send
spec.jwtRules[].outputClaimToHeaders request_authentication::outputs::claims_become_headers_that_clients_cannot_send
spec.jwtRules[].timeout request_authentication::key_servers::server_that_is_silent_delays_the_start_by_the_limit_only
spec.jwtRules[].spaceDelimitedClaims request_authentication::tokens::policies_see_the_claims_of_a_valid_token

# Telemetry telemetry.istio.io
spec.selector untested
spec.targetRef untested
spec.targetRefs untested
spec.metrics untested
spec.metrics[].providers telemetry::metrics_follow_a_telemetry
spec.metrics[].overrides[].match.metric telemetry::metrics_follow_a_telemetry
spec.metrics[].overrides[].disabled telemetry::metrics_follow_a_telemetry
spec.metrics[].overrides[].tagOverrides telemetry::metrics_follow_a_telemetry
spec.tracing untested
spec.tracing[].randomSamplingPercentage traces::sampling::telemetry_samples_and_tags_requests_that_flags_would_not
spec.tracing[].customTags.*.environment.name traces::resources::tags_of_the_environment_have_the_value_of_the_proxy
spec.tracing[].customTags.*.environment.defaultValue traces::resources::tags_of_the_environment_have_the_value_of_the_proxy
spec.tracing[].customTags.*.literal.value traces::sampling::telemetry_samples_and_tags_requests_that_flags_would_not
spec.accessLogging[].match.mode telemetry::log_of_the_mesh_counts_where_no_provider_results
spec.accessLogging[].providers[].name telemetry::changed_telemetry_is_followed_while_the_proxy_serves
spec.accessLogging[].disabled telemetry::changed_telemetry_is_followed_while_the_proxy_serves
spec.accessLogging[].filter.expression telemetry::lines_follow_a_telemetry_with_its_format_and_filter

# ServiceEntry networking.istio.io
spec.hosts routing::weights_split_requests
spec.addresses multicluster::outside::addresses_of_external_services_route_to_them
spec.ports[].number services::service_entry_port_uses_its_protocol_field_not_its_name
spec.ports[].protocol services::service_entry_port_uses_its_protocol_field_not_its_name
spec.ports[].name services::service_entry_port_uses_its_protocol_field_not_its_name
spec.ports[].targetPort dns::addresses_are_renewed_after_the_shortest_ttl
spec.location upstream_tls_kinds::external_service_gets_no_automatic_mutual_tls
spec.resolution dns::dns_round_robin_is_one_endpoint_and_keeps_its_connections
spec.endpoints[].address routing::weights_split_requests
spec.endpoints[].ports routing::weights_split_requests
spec.endpoints[].labels routing::weights_split_requests
spec.endpoints[].network ejections::t112_failover_priority_network_orders_before_region
spec.endpoints[].locality balancing::t109_local_zone_is_preferred_and_other_zones_take_over_on_failure
spec.endpoints[].weight destination_rules::t120_idle_endpoints_get_requests_by_weight
spec.endpoints[].serviceAccount upstream_tls_kinds::istio_mutual_presents_and_verifies_mesh_identities
spec.workloadSelector services::workload_entries_are_selected_by_labels
spec.exportTo pitfalls_http::hosts::virtual_services_not_visible_to_the_gateway_are_not_served
spec.subjectAltNames upstream_tls::service_subject_alt_names_apply_when_the_rule_has_none

# Sidecar networking.istio.io
spec.workloadSelector sidecar::scopes::sidecar_of_the_workload_decides_which_hosts_it_reaches
spec.ingress[].port sidecar::default_endpoint_takes_requests_to_its_port
spec.ingress[].port.name accepted
spec.ingress[].port.targetPort accepted
spec.ingress[].bind sidecar::mutual_tls::two_sidecars_speak_mutual_tls_and_the_workload_learns_who_its_client_is
spec.ingress[].captureMode sidecar::mutual_tls::two_sidecars_speak_mutual_tls_and_the_workload_learns_who_its_client_is
spec.ingress[].defaultEndpoint sidecar::default_endpoint_takes_requests_to_its_port
spec.ingress[].tls sidecar::ingress_tls::ingress_tls_ends_at_the_sidecar_where_mutual_tls_is_off
spec.ingress[].tls.caCertificates sidecar::ingress_tls::mutual_ingress_tls_wants_a_certificate_of_the_client
spec.ingress[].tls.httpsRedirect accepted
spec.ingress[].tls.credentialName accepted
spec.ingress[].tls.credentialNames accepted
spec.ingress[].tls.tlsCertificates accepted
spec.ingress[].tls.subjectAltNames accepted
spec.ingress[].tls.caCrl sidecar::ingress_tls::certificates_of_clients_are_checked_as_ingress_tls_says
spec.ingress[].tls.caCertCredentialName untested
spec.ingress[].tls.verifyCertificateSpki sidecar::ingress_tls::certificates_of_clients_are_checked_as_ingress_tls_says
spec.ingress[].tls.verifyCertificateHash sidecar::ingress_tls::certificates_of_clients_are_checked_as_ingress_tls_says
spec.ingress[].tls.minProtocolVersion sidecar::ingress_tls::versions_and_algorithms_follow_ingress_tls
spec.ingress[].tls.maxProtocolVersion sidecar::ingress_tls::versions_and_algorithms_follow_ingress_tls
spec.ingress[].tls.cipherSuites sidecar::ingress_tls::versions_and_algorithms_follow_ingress_tls
spec.ingress[].tls.ecdhCurves sidecar::ingress_tls::key_exchange_follows_ingress_tls
spec.ingress[].tls.insecureSkipVerify sidecar::ingress_tls::certificates_of_clients_are_checked_as_ingress_tls_says
spec.ingress[].connectionPool sidecar::scopes::limits_of_connections_to_the_workload_hold
spec.inboundConnectionPool sidecar::scopes::limits_of_connections_to_the_workload_hold
spec.egress[].port sidecar::scopes::egress_listeners_without_capture_are_dialed_by_the_workload
spec.egress[].port.protocol sidecar::scopes::egress_listeners_carry_the_protocol_that_they_declare
spec.egress[].port.name accepted
spec.egress[].port.targetPort accepted
spec.egress[].bind sidecar::scopes::egress_listeners_without_capture_are_dialed_by_the_workload
spec.egress[].captureMode sidecar::scopes::egress_listeners_without_capture_are_dialed_by_the_workload
spec.egress[].hosts sidecar::scopes::sidecar_of_the_workload_decides_which_hosts_it_reaches
spec.outboundTrafficPolicy.mode sidecar::unknown_destinations_are_refused_under_registry_only
spec.outboundTrafficPolicy.egressProxy sidecar::scopes::egress_proxy_takes_requests_for_unknown_hosts
spec.outboundTrafficPolicy.egressProxy.subset sidecar::scopes::egress_proxy_can_be_a_subset_of_its_service

# VirtualService networking.istio.io
spec.hosts routing::request_host_selects_the_virtual_host
spec.gateways pitfalls_http::hosts::virtual_services_not_visible_to_the_gateway_are_not_served
spec.http[].name admin::config_dump_and_explain_show_routes_and_resources_and_no_secret
spec.http[].match[].name admin::config_dump_and_explain_show_routes_and_resources_and_no_secret
spec.http[].match[].uri pitfalls_http::matching::uri_conditions_match_the_listed_paths
spec.http[].match[].scheme pitfalls_http::matching::every_part_of_a_request_matches_by_every_kind_of_condition
spec.http[].match[].method pitfalls_http::matching::every_part_of_a_request_matches_by_every_kind_of_condition
spec.http[].match[].authority pitfalls_http::matching::every_part_of_a_request_matches_by_every_kind_of_condition
spec.http[].match[].headers pitfalls_http::matching::every_part_of_a_request_matches_by_every_kind_of_condition
spec.http[].match[].port pitfalls_http::matching::authority_is_compared_with_its_port_and_port_with_the_listener
spec.http[].match[].sourceLabels routing::source_labels_match_the_labels_of_the_proxy
spec.http[].match[].gateways pitfalls_http::hosts::virtual_services_not_visible_to_the_gateway_are_not_served
spec.http[].match[].queryParams pitfalls_http::matching::every_part_of_a_request_matches_by_every_kind_of_condition
spec.http[].match[].ignoreUriCase pitfalls_http::matching::ignore_uri_case_rewrites_by_the_length_of_the_prefix
spec.http[].match[].withoutHeaders pitfalls_http::matching::every_part_of_a_request_matches_by_every_kind_of_condition
spec.http[].match[].sourceNamespace pitfalls_http::merging::delegate_matches_are_intersected_and_conflicts_are_dropped
spec.http[].match[].statPrefix routing::requests_of_match_blocks_are_counted_by_stat_prefix
spec.http[].route[].destination routing::weights_split_requests
spec.http[].route[].destination.port destination_rules::t94_settings_of_a_port_inherit_nothing
spec.http[].route[].weight routing::weights_split_requests
spec.http[].route[].headers pitfalls_http::edits::header_edits_of_rule_and_destination_are_combined
spec.http[].redirect pitfalls_http::answers::redirects_have_the_configured_location
spec.http[].redirect.derivePort pitfalls_http::answers::redirect_port_can_be_derived_from_the_listener
spec.http[].directResponse pitfalls_http::answers::direct_response_is_sent_unchanged
spec.http[].delegate routing::delegates_and_several_virtual_services_serve_one_host
spec.http[].rewrite pitfalls_http::answers::rewrites_replace_the_matched_prefix_literally
spec.http[].rewrite.authority pitfalls_http::answers::rewrite_authority_wins_over_header_edits
spec.http[].timeout timeouts::route_timeout_includes_all_attempts_and_back_off
spec.http[].retries.attempts retries::last_response_is_forwarded_when_all_attempts_are_used
spec.http[].retries.perTryTimeout timeouts::per_try_timeout_is_retried_only_with_a_matching_condition
spec.http[].retries.retryOn retries::each_retry_condition_retries_its_own_responses
spec.http[].retries.retryRemoteLocalities retry_targets::retry_remote_localities_skips_tried_priorities_after_two_attempts
spec.http[].retries.retryIgnorePreviousHosts resilience::retry_leaves_the_hashed_endpoint_and_later_requests_return_to_it
spec.http[].retries.backoff retries::client_disconnect_ends_retries
spec.http[].fault.delay faults::fault_delay_does_not_count_towards_the_timeout
spec.http[].fault.delay.percent faults::percent_of_a_delay_is_followed
spec.http[].fault.delay.exponentialDelay accepted
spec.http[].fault.abort faults::abort_percentage_50_aborts_about_half
spec.http[].fault.abort.grpcStatus faults::grpc_status_abort_applies_to_grpc_clients_only
spec.http[].fault.abort.http2Error accepted
spec.http[].mirror mirrors::mirrored_request_equals_the_forwarded_request
spec.http[].mirrors[].destination mirrors::mirrored_request_equals_the_forwarded_request
spec.http[].mirrors[].percentage mirrors::mirror_percentage_zero_sends_nothing_and_mirrors_share_one_sample
spec.http[].mirrorPercent mirrors::mirror_percent_works_like_mirror_percentage
spec.http[].mirrorPercentage mirrors::mirror_percentage_zero_sends_nothing_and_mirrors_share_one_sample
spec.http[].corsPolicy cors::preflight_of_an_allowed_origin_gets_a_local_reply
spec.http[].corsPolicy.allowOrigin cors::allow_origin_lists_exact_origins_and_allow_origins_replaces_it
spec.http[].corsPolicy.allowOrigins cors::origins_are_allowed_by_prefix_and_regex
spec.http[].corsPolicy.exposeHeaders cors::cors_headers_are_added_after_all_other_header_edits
spec.http[].corsPolicy.unmatchedPreflights cors::preflight_of_an_origin_that_is_not_allowed_follows_unmatched_preflights
spec.http[].headers pitfalls_http::edits::header_edits_of_rule_and_destination_are_combined
spec.tls[].match[].sniHosts passthrough::passthrough_routes_by_sni_without_terminating_tls
spec.tls[].match[].destinationSubnets passthrough::destination_subnets_match_the_address_that_the_client_dialed
spec.tls[].match[].port passthrough::conditions_on_gateway_port_and_workload_select_a_rule_of_bytes
spec.tls[].match[].sourceLabels passthrough::conditions_on_gateway_port_and_workload_select_a_rule_of_bytes
spec.tls[].match[].gateways passthrough::conditions_on_gateway_port_and_workload_select_a_rule_of_bytes
spec.tls[].match[].sourceNamespace passthrough::conditions_on_gateway_port_and_workload_select_a_rule_of_bytes
spec.tls[].route passthrough::passthrough_routes_by_sni_without_terminating_tls
spec.tls[].route[].destination.subset passthrough::passed_tls_is_split_by_weight_and_sent_to_a_subset
spec.tls[].route[].weight passthrough::passed_tls_is_split_by_weight_and_sent_to_a_subset
spec.tcp[].match[].destinationSubnets accepted
spec.tcp[].match[].port pitfalls_gateways::t133_oldest_virtual_service_owns_a_tcp_port_in_any_file_order
spec.tcp[].match[].sourceSubnet tcp::source_subnet_is_matched_only_with_its_flag
spec.tcp[].match[].sourceLabels accepted
spec.tcp[].match[].sourceNamespace accepted
spec.tcp[].match[].gateways passthrough::conditions_on_gateway_port_and_workload_select_a_rule_of_bytes
spec.tcp[].route tcp::t148_weights_count_per_connection
spec.exportTo pitfalls_http::hosts::virtual_services_not_visible_to_the_gateway_are_not_served

# WorkloadEntry networking.istio.io
spec.address services::workload_entries_are_selected_by_labels
spec.ports services::workload_entries_are_selected_by_labels
spec.labels services::workload_entries_are_selected_by_labels
spec.network effects::network_of_workload_entries_orders_failover
spec.locality effects::weight_and_locality_of_workload_entries_count
spec.weight effects::weight_and_locality_of_workload_entries_count
spec.serviceAccount untested

# Cluster flomesh.io
spec untested
spec.region effects::traffic_distribution_of_an_import_prefers_the_zone_in_the_region_of_the_cluster

# GlobalTrafficPolicy flomesh.io
spec.lbType multicluster::shares::locality_policy_stays_in_the_local_cluster
spec.targets[].clusterKey multicluster::shares::active_active_clusters_share_traffic_by_weight
spec.targets[].weight multicluster::shares::active_active_clusters_share_traffic_by_weight
status accepted

# ServiceExport flomesh.io
spec.pathRewrite multicluster::exports::scenario_49_exported_paths_are_rewritten_to_workload_paths
spec.sessionSticky multicluster::exports::scenario_53_a_sticky_client_moves_once_when_its_workload_is_removed
spec.loadBalancer multicluster::exports::scenario_52_export_load_balancer_hashes_clients_to_workloads
spec.rules multicluster::exports::scenario_49_exported_paths_are_rewritten_to_workload_paths
spec.rules[].pathType multicluster::exports::scenarios_50_and_51_exact_paths_match_whole_and_no_rewrite_keeps_the_path
spec.targetClusters multicluster::imports::generated_imports_route_to_the_exporting_cluster
spec.serviceAccountName multicluster::imports::imports_prints_yaml_and_reports_diagnostics_on_standard_error
status accepted

# ServiceImport flomesh.io
spec.ports[].name multicluster::policies::scenario_86_a_port_is_served_only_by_clusters_that_have_it
spec.ports[].port multicluster::policies::scenario_86_a_port_is_served_only_by_clusters_that_have_it
spec.ports[].protocol effects::ports_of_other_clusters_speak_what_they_declare
spec.ports[].appProtocol effects::ports_of_other_clusters_speak_what_they_declare
spec.ports[].endpoints multicluster::shares::active_active_clusters_share_traffic_by_weight
spec.ports[].endpoints[].target.path multicluster::policies::scenario_45_the_path_prefix_is_prepended_and_the_host_kept
spec.ports[].endpoints[].target.host multicluster::remote_clusters::gateways_of_imports_use_the_tls_of_the_remote_clusters_file
spec.ips multicluster::policies::scenario_93_an_import_address_routes_to_its_service
spec.type multicluster::stickiness::scenario_60_a_headless_import_has_no_affinity
spec.sessionAffinity stickiness::import_with_session_affinity_keeps_a_client_at_one_endpoint
spec.sessionAffinityConfig effects::session_affinity_ends_after_its_timeout
spec.serviceAccountName multicluster::remote_clusters::workloads_of_an_import_must_have_its_service_account

# ServiceImport multicluster.x-k8s.io
spec.ports[].name multicluster::upstream_imports::endpoint_slices_serve_an_upstream_service_import
spec.ports[].port multicluster::upstream_imports::endpoint_slices_serve_an_upstream_service_import
spec.ports[].protocol effects::ports_of_other_clusters_speak_what_they_declare
spec.ports[].appProtocol effects::ports_of_other_clusters_speak_what_they_declare
spec.ips multicluster::upstream_imports::an_address_of_an_upstream_service_import_routes_to_its_service
spec.type multicluster::upstream_imports::endpoint_slices_serve_an_upstream_service_import
spec.sessionAffinity multicluster::upstream_imports::endpoint_slices_serve_an_upstream_service_import
spec.sessionAffinityConfig effects::session_affinity_ends_after_its_timeout
spec.internalTrafficPolicy accepted
spec.trafficDistribution effects::traffic_distribution_of_an_import_prefers_the_zone_in_the_region_of_the_cluster

# Destination discovery.mesh.gloo.solo.io
spec.kubeService.ref multicluster::foreign::scenarios_71_and_72_a_federated_host_routes_to_workloads_of_its_cluster
spec.kubeService.workloadSelectorLabels authorization::gloo::access_policies_apply_to_the_workloads_of_their_destination
spec.kubeService.labels multicluster::hops::scenario_72_requests_reach_the_remote_gateway_over_mesh_tls
spec.kubeService.ports[] multicluster::foreign::port_of_workloads_is_found_by_name_or_by_number
spec.kubeService.ports[].protocol effects::ports_of_other_clusters_speak_what_they_declare
spec.kubeService.ports[].appProtocol effects::ports_of_other_clusters_speak_what_they_declare
spec.kubeService.ports[].nodePort multicluster::hops::scenario_72_requests_reach_the_remote_gateway_over_mesh_tls
spec.kubeService.region multicluster::requirements::scenario_75_zones_of_a_destination_fail_over_by_their_capacity
spec.kubeService.endpointSubsets multicluster::foreign::port_of_workloads_is_found_by_name_or_by_number
spec.kubeService.endpointSubsets[].endpoints[].labels multicluster::requirements::scenario_73_workload_labels_define_a_subset_without_a_rule
spec.kubeService.endpointSubsets[].endpoints[].subLocality.zone multicluster::requirements::scenario_75_zones_of_a_destination_fail_over_by_their_capacity
spec.kubeService.endpointSubsets[].endpoints[].subLocality.subZone untested
spec.kubeService.endpointSubsets[].ports[].protocol accepted
spec.kubeService.endpointSubsets[].ports[].appProtocol accepted
spec.kubeService.externalAddresses[].dnsName untested
spec.kubeService.externalAddresses[].ip multicluster::hops::scenario_72_requests_reach_the_remote_gateway_over_mesh_tls
spec.kubeService.serviceType multicluster::hops::scenario_72_requests_reach_the_remote_gateway_over_mesh_tls
spec.externalService multicluster::foreign::scenario_76_endpoints_of_an_external_service_use_their_own_ports
spec.externalService.addresses multicluster::outside::addresses_of_external_services_route_to_them
spec.mesh multicluster::foreign::scenario_71_a_federated_host_is_known_in_the_meshes_that_it_is_federated_to
status.appliedAccessPolicies authorization::gloo::sources_of_access_policies_are_identities_of_clusters
status.appliedAccessPolicies[].ref authorization::gloo::explain_and_metrics_name_the_destination
status.appliedAccessPolicies[].spec.allowedPaths authorization::gloo::allowed_paths_methods_and_ports_are_one_operation
status.appliedAccessPolicies[].spec.allowedMethods authorization::gloo::allowed_paths_methods_and_ports_are_one_operation
status.appliedAccessPolicies[].spec.allowedPorts authorization::gloo::allowed_paths_methods_and_ports_are_one_operation
status.appliedTrafficPolicies multicluster::requirements::a_shift_applies_only_where_its_policy_is_attached
status.localFqdn multicluster::foreign::a_local_name_is_known_in_its_own_cluster_only
status.appliedFederation multicluster::foreign::scenario_71_a_federated_host_is_known_in_the_meshes_that_it_is_federated_to
status.appliedFederation.flatNetwork multicluster::hops::scenario_72_in_a_flat_network_requests_go_to_the_workloads
status.appliedFederation.tcpKeepalive multicluster::requirements::scenario_94_tcp_keepalive_of_a_destination_probes_remote_connections
status.requiredSubsets multicluster::requirements::scenario_74_a_shift_of_one_service_is_executed
status.requiredSubsets[].trafficPolicyRef multicluster::requirements::a_shift_applies_only_where_its_policy_is_attached
status.requiredSubsets[].trafficShift.destinations[].kubeService.port untested
status.requiredSubsets[].trafficShift.destinations[].virtualDestination accepted
status.requiredSubsets[].trafficShift.destinations[].staticDestination accepted
status.requiredSubsets[].trafficShift.destinations[].clusterHeader accepted

# MultiClusterService networking.karmada.io
spec.types multicluster::policies::scenario_69_an_edge_gateway_uses_every_provider
spec.ports multicluster::policies::scenario_66_unexposed_ports_stay_local
spec.providerClusters multicluster::visibility::scenarios_61_to_63_and_68_only_providers_serve_and_only_consumers_use
spec.consumerClusters multicluster::visibility::scenarios_61_to_63_and_68_only_providers_serve_and_only_consumers_use
spec.range multicluster::visibility::older_consumer_fields_apply_without_the_newer_ones
spec.serviceProvisionClusters multicluster::visibility::scenarios_61_to_63_and_68_only_providers_serve_and_only_consumers_use
spec.serviceConsumptionClusters multicluster::visibility::older_consumer_fields_apply_without_the_newer_ones
status accepted

# EndpointSlice discovery.k8s.io
addressType accepted
endpoints[].addresses services::service_endpoints_come_from_endpoint_slices
endpoints[].conditions.ready services::service_endpoints_come_from_endpoint_slices
endpoints[].hostname multicluster::upstream_imports::endpoint_slices_serve_an_upstream_service_import
endpoints[].nodeName stickiness::traffic_distribution_prefer_same_node_keeps_traffic_on_the_node
endpoints[].zone balancing::traffic_distribution_prefer_same_zone_keeps_traffic_in_the_zone
endpoints[].targetRef kubernetes_pods::subsets_select_endpoints_by_labels_of_pods
ports[].name services::service_endpoints_come_from_endpoint_slices
ports[].port services::service_endpoints_come_from_endpoint_slices
ports[].protocol accepted
ports[].appProtocol untested

# Pod core
spec.serviceAccountName kubernetes_pods::automatic_mutual_tls_follows_the_label_of_each_pod
spec.nodeName untested
status.phase untested
status.podIP kubernetes_pods::workload_selector_of_a_service_entry_selects_pods
status.podIPs untested
status.conditions untested

# Secret core
type accepted
data effects::data_of_a_secret_is_decoded
stringData tls_names::request_over_tls_reaches_its_origin

# Service core
spec.ports[].name services::port_protocol_follows_name_and_app_protocol
spec.ports[].port services::service_endpoints_come_from_endpoint_slices
spec.ports[].targetPort services::service_endpoints_come_from_endpoint_slices
spec.ports[].protocol effects::ports_of_a_service_that_are_not_tcp_serve_no_requests
spec.ports[].appProtocol services::port_protocol_follows_name_and_app_protocol
spec.selector effects::selector_of_a_service_selects_workload_entries
spec.clusterIP untested
spec.type effects::external_name_of_a_service_is_resolved
spec.sessionAffinity stickiness::service_with_session_affinity_keeps_a_client_at_one_endpoint
spec.sessionAffinityConfig effects::session_affinity_ends_after_its_timeout
spec.externalName effects::external_name_of_a_service_is_resolved
spec.internalTrafficPolicy accepted
spec.trafficDistribution balancing::traffic_distribution_prefer_same_zone_keeps_traffic_in_the_zone
";
