// One service: shares wanted and seen, health and ejections, latency, tiers.

import { failed, h, ms, percent, rate, simpleTable } from './dom.js';

const share = (value) => `${(value * 100).toFixed(1)}%`;

export const service = ({ main, stream, argument }) => {
  const box = h('div');
  main.append(h('h2', {}, argument), box);
  stream({ view: 'endpoint', service: argument, count: 200 });

  function facts(cluster) {
    const limits = cluster.limits.map((limit) => `${limit.name} ${limit.active}${limit.max === null ? '' : `/${limit.max}`}`);
    const rows = [
      ['Balancer', cluster.load_balancer], ['Protocol', cluster.protocol], ['TLS', cluster.tls ?? 'none'],
      ['Health check', cluster.health_check ?? 'none'], ['In use', limits.join(', ')], ['From', cluster.sources.join(', ')],
    ];
    const nobody = cluster.no_cluster_reason;
    return h('dl', { class: 'facts' }, rows.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]),
      nobody ? [h('dt', {}, 'No cluster'), h('dd', { class: 'bad' }, nobody)] : []);
  }

  function endpoints(cluster, rates) {
    const seen = new Map(rates.map((row) => [row.name, row.rate]));
    const total = cluster.endpoints.reduce((sum, one) => sum + (seen.get(one.address) ?? 0), 0);
    return simpleTable('Endpoints', [
      ['Endpoint', '', (one) => one.address], ['Locality', '', (one) => one.locality || '-'], ['Priority', 'number', (one) => String(one.priority)],
      ['Share wanted', 'number', (one) => share(one.share)],
      ['Share seen', 'number', (one) => (total > 0 ? share((seen.get(one.address) ?? 0) / total) : '-')],
      ['req/s', 'number', (one) => rate(seen.get(one.address) ?? 0)], ['Active', 'number', (one) => String(one.rq_active)],
      ['Ejections', 'number', (one) => String(one.ejections)],
      ['Health', '', (one) => h('span', { class: one.unavailable_reason ? 'bad' : 'good' }, one.unavailable_reason ?? 'available')],
      ['Last check', '', (one) => one.last_health_check ?? '-'], ['Warm-up', '', (one) => one.warmup ?? '-'],
    ], cluster.endpoints);
  }

  const tiers = (cluster, rates) => {
    if (cluster.member_clusters.length === 0) return [];
    const seen = (key) => rates.filter((row) => row.about.split(' ')[1] === key.split('/').pop()).reduce((sum, row) => sum + row.rate, 0);
    const total = cluster.member_clusters.reduce((sum, one) => sum + seen(one.cluster_key), 0);
    return [simpleTable('Kubernetes clusters', [
    ['Cluster', '', (one) => one.cluster_key], ['Tier', 'number', (one) => String(one.tier)], ['Weight', 'number', (one) => String(one.weight)],
    ['Share wanted', 'number', (one) => share(one.share)],
    ['Share seen', 'number', (one) => (total > 0 ? share(seen(one.cluster_key) / total) : '-')],
    ['State', '', (one) => h('span', { class: one.available ? 'good' : 'bad' }, one.available ? 'available' : 'not available')],
    ], cluster.member_clusters)];
  };

  const priorities = (cluster) => cluster.priorities.length < 2 ? [] : [simpleTable('Priorities', [
    ['Priority', 'number', (one) => String(cluster.priorities.indexOf(one))], ['Load', 'number', (one) => `${one.load}%`],
    ['Healthy', 'number', (one) => `${one.healthy}/${one.total}`], ['Panic mode', '', (one) => (one.panic_mode ? 'yes' : 'no')],
  ], cluster.priorities)];

  return {
    update(message) {
      if (!message.service) return;
      const { row, clusters } = message.service;
      const sum = row ? `${rate(row.rate)} req/s, ${percent(failed(row))} failed, p50 ${ms(row.p50_ms)}, p99 ${ms(row.p99_ms)}` : message.interval_seconds === 0 ? 'Measuring' : 'No requests yet.';
      box.replaceChildren(h('p', {}, sum), ...clusters.flatMap((cluster) => [
        h('h2', {}, cluster.name), facts(cluster), ...tiers(cluster, message.rows ?? []), ...priorities(cluster), endpoints(cluster, message.rows ?? []),
      ]));
      if (clusters.length === 0) box.append(h('p', {}, 'The configuration has no such service.'));
    },
  };
};
