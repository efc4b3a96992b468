//! Which test shows the effect of each field on traffic.
//!
//! A line is a field and a test in `proxy/tests/it`, by its module and name. A line holds for all parts of its field, unless a
//! longer one names the part. `accepted` marks fields that nothing uses, `untested` those whose effect no test shows.

/// Lines below `# KIND GROUP`. What holds for `spec.trafficPolicy` of a DestinationRule holds for policies of subsets and ports:
/// `compile::tests::fields` of the proxy shows it for each field.
pub const EFFECTS: &str = "
# DestinationRule networking.istio.io
spec.host destination_rules::t91_less_specific_rule_fills_no_gap
spec.trafficPolicy.loadBalancer.simple destination_rules::t120_idle_endpoints_get_requests_by_weight
spec.trafficPolicy.loadBalancer.consistentHash balancing::requests_with_the_same_key_go_to_the_same_endpoint
spec.trafficPolicy.loadBalancer.consistentHash.httpCookie balancing::t98_t99_cookie_is_issued_when_it_has_a_lifetime
spec.trafficPolicy.loadBalancer.consistentHash.ringHash destination_rules::t100_keys_lead_where_the_specification_says
spec.trafficPolicy.loadBalancer.consistentHash.maglev destination_rules::t100_keys_lead_where_the_specification_says
spec.trafficPolicy.loadBalancer.consistentHash.minimumRingSize untested
spec.trafficPolicy.loadBalancer.localityLbSetting.distribute balancing::t111_traffic_is_distributed_over_localities_as_told
spec.trafficPolicy.loadBalancer.localityLbSetting.failover balancing::failover_that_is_asked_for_acts_on_endpoints_that_are_gone
spec.trafficPolicy.loadBalancer.localityLbSetting.failoverPriority ejections::t112_networks_come_before_regions
spec.trafficPolicy.loadBalancer.localityLbSetting.enabled balancing::locality_settings_that_are_disabled_leave_zones_alone
spec.trafficPolicy.loadBalancer.zoneAwareLbSetting resilience::own_zone_keeps_its_share_of_the_traffic
spec.trafficPolicy.loadBalancer.zoneAwareLbSetting.failover untested
spec.trafficPolicy.loadBalancer.zoneAwareLbSetting.failoverPriority untested
spec.trafficPolicy.loadBalancer.warmup ejections::t121_new_endpoint_warms_up
spec.trafficPolicy.loadBalancer.warmup.aggression untested
spec.trafficPolicy.loadBalancer.warmupDurationSecs ejections::warmup_duration_secs_is_the_older_name_of_the_duration
spec.trafficPolicy.connectionPool.tcp.maxConnections connection_pools::t113_one_is_active_one_waits_and_one_overflows
spec.trafficPolicy.connectionPool.tcp.connectTimeout untested
spec.trafficPolicy.connectionPool.tcp.tcpKeepalive balancing::silent_connections_are_probed_when_asked
spec.trafficPolicy.connectionPool.tcp.maxConnectionDuration connection_pools::connection_is_not_used_for_longer_than_it_may
spec.trafficPolicy.connectionPool.tcp.idleTimeout tcp::connection_that_is_idle_for_too_long_is_reset_on_both_sides
spec.trafficPolicy.connectionPool.http.http1MaxPendingRequests connection_pools::t113_one_is_active_one_waits_and_one_overflows
spec.trafficPolicy.connectionPool.http.http2MaxRequests connection_pools::limits_hold_exactly_over_all_workers_and_leak_nothing
spec.trafficPolicy.connectionPool.http.maxRequestsPerConnection connection_pools::t116_connection_is_closed_after_as_many_requests
spec.trafficPolicy.connectionPool.http.maxRetries untested
spec.trafficPolicy.connectionPool.http.idleTimeout connection_pools::connection_that_was_idle_for_its_timeout_carries_no_request
spec.trafficPolicy.connectionPool.http.h2UpgradePolicy connection_pools::t119_requests_are_upgraded_where_the_port_says_http
spec.trafficPolicy.connectionPool.http.useClientProtocol connection_pools::endpoint_is_spoken_to_as_the_client_speaks
spec.trafficPolicy.connectionPool.http.maxConcurrentStreams upstream_http2::policy_may_allow_fewer_streams_or_requests_on_a_connection
spec.trafficPolicy.connectionPool.http.http2KeepAlive upstream_http2_frames::silent_endpoint_is_asked_and_given_up_when_the_rule_says_so
spec.trafficPolicy.outlierDetection.consecutiveErrors accepted
spec.trafficPolicy.outlierDetection.splitExternalLocalOriginErrors ejections::failures_to_connect_are_counted_apart_when_asked
spec.trafficPolicy.outlierDetection.consecutiveLocalOriginFailures ejections::failures_to_connect_are_counted_apart_when_asked
spec.trafficPolicy.outlierDetection.consecutiveGatewayErrors ejections::t105_gateway_errors_are_counted_apart
spec.trafficPolicy.outlierDetection.consecutive5xxErrors balancing::t101_endpoint_that_fails_is_ejected_and_comes_back
spec.trafficPolicy.outlierDetection.interval ejections::t102_second_ejection_is_twice_as_long
spec.trafficPolicy.outlierDetection.baseEjectionTime ejections::t102_second_ejection_is_twice_as_long
spec.trafficPolicy.outlierDetection.maxEjectionPercent balancing::t106_t107_ejections_of_all_are_no_endpoint_or_panic
spec.trafficPolicy.outlierDetection.minHealthPercent balancing::t106_t107_ejections_of_all_are_no_endpoint_or_panic
spec.trafficPolicy.outlierDetection.outlierDetectionHttpErrorCodes ejections::listed_statuses_count_as_errors_in_place_of_5xx
spec.trafficPolicy.tls upstream_tls::certificate_of_the_server_is_verified_as_the_rule_says
spec.trafficPolicy.tls.mode upstream_tls::plain_port_goes_out_as_tls_by_the_name_of_the_host
spec.trafficPolicy.tls.clientCertificate upstream_tls::both_sides_show_certificates_from_files_and_secrets
spec.trafficPolicy.tls.privateKey upstream_tls::both_sides_show_certificates_from_files_and_secrets
spec.trafficPolicy.tls.credentialName upstream_tls::both_sides_show_certificates_from_files_and_secrets
spec.trafficPolicy.tunnel tunnels::connect_opens_a_tunnel_for_bytes_as_they_are
spec.trafficPolicy.tunnel.protocol tunnels::post_carries_bytes_as_bodies
spec.trafficPolicy.proxyProtocol proxy_protocol::endpoint_of_a_tcp_connection_is_told_the_client
spec.trafficPolicy.retryBudget retries::requests_of_the_budget_interval_allow_retries_though_they_are_over
spec.trafficPolicy.portLevelSettings[].port destination_rules::t94_settings_of_a_port_inherit_nothing
spec.subsets[].name routing::rules_are_tried_in_order_and_the_first_that_holds_wins
spec.subsets[].labels routing::rules_are_tried_in_order_and_the_first_that_holds_wins
spec.exportTo destination_rules::t92_rule_of_the_client_counts_alone
spec.workloadSelector destination_rules::rule_for_some_workloads_counts_for_them_alone

# Gateway networking.istio.io
spec.servers[].port listeners::requests_are_answered_on_one_connection
spec.servers[].port.name multicluster::exports_tls::the_servers_that_serve_other_clusters_may_be_named
spec.servers[].port.protocol passthrough::name_chooses_the_server_and_nothing_is_terminated
spec.servers[].bind unix_listener::requests_come_over_a_path_whose_file_comes_and_goes
spec.servers[].hosts tls_names::host_of_another_server_is_misdirected_on_http2_and_unknown_on_http1
spec.servers[].name untested
spec.servers[].tls.httpsRedirect tls_names::http_server_redirects_to_https
spec.servers[].tls.mode tls_clients::mutual_lets_in_whom_the_authority_signed
spec.servers[].tls.serverCertificate tls_reload::certificate_in_files_is_followed_and_open_connections_stay
spec.servers[].tls.privateKey tls_reload::certificate_in_files_is_followed_and_open_connections_stay
spec.servers[].tls.caCertificates multicluster::exports_tls::a_gateway_serves_other_clusters_in_tls_that_both_sides_verify
spec.servers[].tls.caCrl untested
spec.servers[].tls.credentialName tls_names::request_over_tls_reaches_its_origin
spec.servers[].tls.credentialNames tls_versions::client_gets_the_certificate_that_it_can_verify
spec.servers[].tls.tlsCertificates untested
spec.servers[].tls.caCertCredentialName tls_clients::authorities_may_be_in_a_secret_beside
spec.servers[].tls.subjectAltNames tls_clients::only_some_names_are_let_in
spec.servers[].tls.verifyCertificateSpki tls_clients::either_of_two_lists_of_pins_lets_in
spec.servers[].tls.verifyCertificateHash tls_clients::either_of_two_lists_of_pins_lets_in
spec.servers[].tls.minProtocolVersion tls_versions::versions_are_those_of_the_server
spec.servers[].tls.maxProtocolVersion tls_versions::versions_are_those_of_the_server
spec.servers[].tls.cipherSuites tls_versions::cipher_suites_are_those_of_the_server_and_have_no_say_in_tls_1_3
spec.servers[].tls.ecdhCurves tls_versions::curve_that_is_not_offered_is_reported
spec.servers[].tls.insecureSkipVerify tls_clients::without_verification_any_certificate_will_do
spec.selector startup::gateway_of_other_proxies_is_named_when_nothing_listens

# ServiceEntry networking.istio.io
spec.hosts routing::weights_split_requests
spec.addresses multicluster::outside::addresses_of_services_outside_are_for_them
spec.ports[].number services::port_of_a_service_entry_speaks_its_protocol_whatever_its_name_is
spec.ports[].protocol services::port_of_a_service_entry_speaks_its_protocol_whatever_its_name_is
spec.ports[].name services::port_of_a_service_entry_speaks_its_protocol_whatever_its_name_is
spec.ports[].targetPort dns::addresses_are_renewed_when_the_shortest_lifetime_of_an_answer_is_over
spec.location upstream_tls_kinds::external_service_gets_no_tls_by_itself
spec.resolution dns::round_robin_name_is_one_endpoint_and_keeps_its_connections
spec.endpoints[].address routing::weights_split_requests
spec.endpoints[].ports routing::weights_split_requests
spec.endpoints[].labels routing::weights_split_requests
spec.endpoints[].network ejections::t112_networks_come_before_regions
spec.endpoints[].locality balancing::t109_endpoints_in_the_own_zone_come_first_and_others_take_over
spec.endpoints[].weight destination_rules::t120_idle_endpoints_get_requests_by_weight
spec.endpoints[].serviceAccount upstream_tls_kinds::mesh_identity_is_shown_and_wanted
spec.workloadSelector services::workloads_are_selected_by_labels
spec.exportTo pitfalls_http::hosts::what_a_gateway_does_not_see_it_does_not_serve
spec.subjectAltNames upstream_tls::names_of_the_service_count_where_the_rule_has_none

# VirtualService networking.istio.io
spec.hosts routing::hosts_choose_the_virtual_host
spec.gateways pitfalls_http::hosts::what_a_gateway_does_not_see_it_does_not_serve
spec.http[].name admin::dump_and_explanation_show_routes_and_resources_and_no_secret
spec.http[].match[].name admin::dump_and_explanation_show_routes_and_resources_and_no_secret
spec.http[].match[].uri pitfalls_http::matching::paths
spec.http[].match[].scheme pitfalls_http::matching::every_part_of_a_request_matches_by_every_kind_of_condition
spec.http[].match[].method pitfalls_http::matching::every_part_of_a_request_matches_by_every_kind_of_condition
spec.http[].match[].authority pitfalls_http::matching::every_part_of_a_request_matches_by_every_kind_of_condition
spec.http[].match[].headers pitfalls_http::matching::every_part_of_a_request_matches_by_every_kind_of_condition
spec.http[].match[].port pitfalls_http::matching::authority_is_compared_with_its_port_and_port_with_the_listener
spec.http[].match[].sourceLabels routing::source_labels_are_those_of_the_proxy
spec.http[].match[].gateways pitfalls_http::hosts::what_a_gateway_does_not_see_it_does_not_serve
spec.http[].match[].queryParams pitfalls_http::matching::every_part_of_a_request_matches_by_every_kind_of_condition
spec.http[].match[].ignoreUriCase pitfalls_http::matching::case_that_does_not_count_is_cut_off_by_length
spec.http[].match[].withoutHeaders pitfalls_http::matching::every_part_of_a_request_matches_by_every_kind_of_condition
spec.http[].match[].sourceNamespace pitfalls_http::merging::delegates_take_what_both_match_and_lose_what_conflicts
spec.http[].match[].statPrefix routing::requests_of_blocks_with_a_stat_prefix_are_counted_by_it
spec.http[].route[].destination routing::weights_split_requests
spec.http[].route[].destination.port destination_rules::t94_settings_of_a_port_inherit_nothing
spec.http[].route[].weight routing::weights_split_requests
spec.http[].route[].headers pitfalls_http::edits::edits_of_rule_and_destination_meet
spec.http[].redirect pitfalls_http::answers::redirects_lead_where_they_say
spec.http[].redirect.derivePort pitfalls_http::answers::port_of_a_redirect_can_follow_the_listener
spec.http[].directResponse pitfalls_http::answers::direct_response_is_sent_once_and_as_it_is
spec.http[].delegate routing::delegates_and_several_virtual_services_share_a_host
spec.http[].rewrite pitfalls_http::answers::rewrites_replace_what_matched_literally
spec.http[].rewrite.authority pitfalls_http::answers::authority_of_the_rewrite_wins_over_those_of_headers
spec.http[].timeout timeouts::time_of_the_route_spans_all_tries_and_pauses
spec.http[].retries.attempts retries::last_response_is_passed_on_when_all_tries_are_used
spec.http[].retries.perTryTimeout timeouts::try_that_takes_too_long_is_repeated_only_if_the_policy_says_so
spec.http[].retries.retryOn retries::each_response_is_tried_again_by_its_own_condition
spec.http[].retries.retryRemoteLocalities retry_targets::retries_that_widen_leave_out_priorities_after_two_attempts
spec.http[].retries.retryIgnorePreviousHosts resilience::retry_of_a_sticky_request_goes_elsewhere_and_its_home_stays
spec.http[].retries.backoff retries::client_that_leaves_ends_the_tries
spec.http[].fault.delay faults::delay_does_not_count_in_the_timeout
spec.http[].fault.delay.percent untested
spec.http[].fault.delay.exponentialDelay accepted
spec.http[].fault.abort faults::abort_of_half_of_the_requests_hits_about_half
spec.http[].fault.abort.grpcStatus faults::grpc_status_reaches_only_clients_that_speak_grpc
spec.http[].fault.abort.http2Error accepted
spec.http[].mirror mirrors::copy_is_the_request_as_it_is_forwarded
spec.http[].mirrors[].destination mirrors::copy_is_the_request_as_it_is_forwarded
spec.http[].mirrors[].percentage mirrors::share_of_nothing_makes_no_copies_and_one_draw_serves_all
spec.http[].mirrorPercent mirrors::mirror_percent_is_the_older_name_of_the_share
spec.http[].mirrorPercentage mirrors::share_of_nothing_makes_no_copies_and_one_draw_serves_all
spec.http[].corsPolicy cors::preflight_of_an_allowed_origin_is_answered_here
spec.http[].corsPolicy.allowOrigin cors::allow_origin_lists_exact_origins_and_allow_origins_replaces_it
spec.http[].corsPolicy.allowOrigins cors::origins_are_allowed_by_prefix_and_regex
spec.http[].corsPolicy.exposeHeaders cors::response_to_an_allowed_origin_says_so_last_of_all
spec.http[].corsPolicy.unmatchedPreflights cors::preflight_of_another_origin_goes_upstream_unless_it_is_to_be_ignored
spec.http[].headers pitfalls_http::edits::edits_of_rule_and_destination_meet
spec.tls[].match[].sniHosts passthrough::name_chooses_the_server_and_nothing_is_terminated
spec.tls[].match[].destinationSubnets passthrough::destination_subnets_of_a_tls_rule_are_those_of_the_address_that_clients_dial
spec.tls[].match[].port untested
spec.tls[].match[].sourceLabels untested
spec.tls[].match[].gateways untested
spec.tls[].match[].sourceNamespace untested
spec.tls[].route passthrough::name_chooses_the_server_and_nothing_is_terminated
spec.tls[].route[].destination.subset untested
spec.tls[].route[].weight untested
spec.tcp[].match[].destinationSubnets accepted
spec.tcp[].match[].port pitfalls_gateways::t133_oldest_virtual_service_has_a_tcp_port_whatever_the_order_of_files
spec.tcp[].match[].sourceSubnet tcp::source_subnet_counts_only_when_asked
spec.tcp[].match[].sourceLabels accepted
spec.tcp[].match[].sourceNamespace accepted
spec.tcp[].match[].gateways untested
spec.tcp[].route tcp::t148_weights_count_per_connection
spec.exportTo pitfalls_http::hosts::what_a_gateway_does_not_see_it_does_not_serve

# WorkloadEntry networking.istio.io
spec.address services::workloads_are_selected_by_labels
spec.ports services::workloads_are_selected_by_labels
spec.labels services::workloads_are_selected_by_labels
spec.network untested
spec.locality untested
spec.weight untested
spec.serviceAccount untested

# Cluster flomesh.io
spec untested

# GlobalTrafficPolicy flomesh.io
spec.lbType multicluster::shares::locality_stays_in_the_own_cluster
spec.targets[].clusterKey multicluster::shares::active_clusters_share_by_weight
spec.targets[].weight multicluster::shares::active_clusters_share_by_weight
status accepted

# ServiceExport flomesh.io
spec.pathRewrite multicluster::exports::scenario_49_exported_paths_lead_to_workloads_under_their_own_paths
spec.sessionSticky multicluster::exports::scenario_53_a_client_moves_once_when_its_workload_goes
spec.loadBalancer multicluster::exports::scenario_52_hashing_keeps_a_client_at_its_workload
spec.rules multicluster::exports::scenario_49_exported_paths_lead_to_workloads_under_their_own_paths
spec.rules[].pathType multicluster::exports::scenarios_50_and_51_exact_paths_are_whole_and_without_a_rewrite_nothing_changes
spec.targetClusters multicluster::imports::written_imports_lead_to_the_workloads_of_the_cluster_that_exports
spec.serviceAccountName multicluster::imports::imports_are_documents_of_yaml_and_what_is_wrong_goes_to_standard_error
status accepted

# ServiceImport flomesh.io
spec.ports[].name multicluster::policies::scenario_86_a_port_is_served_by_the_clusters_that_have_it
spec.ports[].port multicluster::policies::scenario_86_a_port_is_served_by_the_clusters_that_have_it
spec.ports[].protocol untested
spec.ports[].appProtocol untested
spec.ports[].endpoints multicluster::shares::active_clusters_share_by_weight
spec.ports[].endpoints[].target.path multicluster::policies::scenario_45_the_prefix_comes_before_the_path_and_the_host_stays
spec.ports[].endpoints[].target.host multicluster::told::gateways_of_imports_are_spoken_to_as_the_proxy_was_told
spec.ips multicluster::policies::scenario_93_an_address_stands_for_the_service_among_clusters
spec.type multicluster::stickiness::scenario_60_a_headless_import_has_no_affinity
spec.sessionAffinity stickiness::import_with_session_affinity_keeps_a_client_at_one_endpoint
spec.sessionAffinityConfig untested
spec.serviceAccountName multicluster::told::workloads_of_an_import_are_those_of_its_service_account

# ServiceImport multicluster.x-k8s.io
spec.ports[].name multicluster::upstream_imports::slices_serve_an_import_of_upstream
spec.ports[].port multicluster::upstream_imports::slices_serve_an_import_of_upstream
spec.ports[].protocol untested
spec.ports[].appProtocol untested
spec.ips multicluster::upstream_imports::an_address_of_upstreams_import_is_for_its_service
spec.type multicluster::upstream_imports::slices_serve_an_import_of_upstream
spec.sessionAffinity multicluster::upstream_imports::slices_serve_an_import_of_upstream
spec.sessionAffinityConfig untested
spec.internalTrafficPolicy untested
spec.trafficDistribution untested

# Destination discovery.mesh.gloo.solo.io
spec.kubeService.ref multicluster::foreign::scenarios_71_and_72_a_federated_host_leads_to_the_workloads_of_its_cluster
spec.kubeService.labels multicluster::hops::scenario_72_requests_go_through_the_gateway_of_the_cluster_in_the_meshs_own_tls
spec.kubeService.ports[] multicluster::foreign::port_of_workloads_is_found_by_name_or_by_number
spec.kubeService.ports[].protocol untested
spec.kubeService.ports[].appProtocol untested
spec.kubeService.ports[].nodePort multicluster::hops::scenario_72_requests_go_through_the_gateway_of_the_cluster_in_the_meshs_own_tls
spec.kubeService.region multicluster::requirements::scenario_75_zones_of_a_destination_fail_over_by_what_is_left_of_them
spec.kubeService.endpointSubsets multicluster::foreign::port_of_workloads_is_found_by_name_or_by_number
spec.kubeService.endpointSubsets[].endpoints[].labels multicluster::requirements::scenario_73_labels_of_workloads_make_a_subset_that_nothing_else_defines
spec.kubeService.endpointSubsets[].endpoints[].subLocality.zone multicluster::requirements::scenario_75_zones_of_a_destination_fail_over_by_what_is_left_of_them
spec.kubeService.endpointSubsets[].endpoints[].subLocality.subZone untested
spec.kubeService.endpointSubsets[].ports[].protocol untested
spec.kubeService.endpointSubsets[].ports[].appProtocol untested
spec.kubeService.externalAddresses[].dnsName untested
spec.kubeService.externalAddresses[].ip multicluster::hops::scenario_72_requests_go_through_the_gateway_of_the_cluster_in_the_meshs_own_tls
spec.kubeService.serviceType multicluster::hops::scenario_72_requests_go_through_the_gateway_of_the_cluster_in_the_meshs_own_tls
spec.externalService multicluster::foreign::scenario_76_endpoints_of_an_external_service_share_by_their_own_ports
spec.externalService.addresses multicluster::outside::addresses_of_services_outside_are_for_them
spec.mesh multicluster::foreign::scenario_71_a_federated_host_is_known_in_the_meshes_that_it_is_federated_to
status.appliedTrafficPolicies multicluster::requirements::a_shift_counts_where_its_policy_is_attached_and_nothing_else_routes_the_host
status.localFqdn multicluster::foreign::a_local_name_is_known_in_its_own_cluster_only
status.appliedFederation multicluster::foreign::scenario_71_a_federated_host_is_known_in_the_meshes_that_it_is_federated_to
status.appliedFederation.flatNetwork multicluster::hops::scenario_72_in_a_flat_network_requests_go_to_the_workloads
status.appliedFederation.tcpKeepalive multicluster::requirements::scenario_94_connections_to_another_cluster_are_probed_as_its_destination_says
status.requiredSubsets multicluster::requirements::scenario_74_a_shift_of_one_service_is_executed
status.requiredSubsets[].trafficPolicyRef multicluster::requirements::a_shift_counts_where_its_policy_is_attached_and_nothing_else_routes_the_host
status.requiredSubsets[].trafficShift.destinations[].kubeService.port untested
status.requiredSubsets[].trafficShift.destinations[].virtualDestination accepted
status.requiredSubsets[].trafficShift.destinations[].staticDestination accepted
status.requiredSubsets[].trafficShift.destinations[].clusterHeader accepted

# MultiClusterService networking.karmada.io
spec.types multicluster::policies::scenario_69_a_gateway_at_the_edge_uses_every_provider
spec.ports multicluster::policies::scenario_66_ports_that_are_not_exposed_stay_at_home
spec.providerClusters multicluster::visibility::scenarios_61_to_63_and_68_providers_serve_and_consumers_use
spec.consumerClusters multicluster::visibility::scenarios_61_to_63_and_68_providers_serve_and_consumers_use
spec.range multicluster::visibility::older_names_of_consumers_count_where_newer_ones_are_absent
spec.serviceProvisionClusters multicluster::visibility::scenarios_61_to_63_and_68_providers_serve_and_consumers_use
spec.serviceConsumptionClusters multicluster::visibility::older_names_of_consumers_count_where_newer_ones_are_absent
status accepted

# EndpointSlice discovery.k8s.io
addressType accepted
endpoints[].addresses services::service_takes_its_endpoints_from_slices
endpoints[].conditions.ready services::service_takes_its_endpoints_from_slices
endpoints[].hostname multicluster::upstream_imports::slices_serve_an_import_of_upstream
endpoints[].nodeName stickiness::service_prefers_its_own_node_when_it_says_so
endpoints[].zone balancing::service_prefers_its_own_zone_when_it_says_so
endpoints[].targetRef services::metrics_name_the_workload_of_a_pod
ports[].name services::service_takes_its_endpoints_from_slices
ports[].port services::service_takes_its_endpoints_from_slices
ports[].protocol untested
ports[].appProtocol untested

# Secret core
type accepted
data untested
stringData tls_names::request_over_tls_reaches_its_origin

# Service core
spec.ports[].name services::protocol_of_a_port_follows_its_name_and_app_protocol
spec.ports[].port services::service_takes_its_endpoints_from_slices
spec.ports[].targetPort services::service_takes_its_endpoints_from_slices
spec.ports[].protocol untested
spec.ports[].appProtocol services::protocol_of_a_port_follows_its_name_and_app_protocol
spec.selector untested
spec.clusterIP untested
spec.type untested
spec.sessionAffinity stickiness::service_with_session_affinity_keeps_a_client_at_one_endpoint
spec.sessionAffinityConfig untested
spec.externalName untested
spec.externalTrafficPolicy untested
spec.internalTrafficPolicy untested
spec.trafficDistribution balancing::service_prefers_its_own_zone_when_it_says_so
";
