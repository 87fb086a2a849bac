"""What runs inside Redis, atomically: the order of a space, the fence against dead nodes, leases, snapshots."""

from hashlib import sha1
from typing import Final, NamedTuple

__all__ = ["APPEND", "ENTER", "GONE", "LEASE", "SCRIPTS", "SNAPSHOT", "SpaceKeys"]


class SpaceKeys(NamedTuple):
    """The keys of one space. The name of the log is also that of the channel on which its entries are announced.

    `log`: a stream; an entry is a batch `b` of the node `w` whose last event has the number `s`. `head`: a hash with
    the epoch `e` of the log, the last number `s` and id `i`, and a field for each node that may append. `snapshots`: a
    hash with the last two.
    """

    log: str
    head: str
    snapshots: str

    @classmethod
    def of(cls, prefix: str, space: str) -> "SpaceKeys":
        base = f"{prefix}{{{space}}}"
        return cls(f"{base}:log", f"{base}:head", f"{base}:snapshots")


class Script(NamedTuple):
    """A script, and the digest by which it is called once it was loaded."""

    source: str
    digest: str


def _script(source: str) -> Script:
    return Script(source, sha1(source.encode(), usedforsecurity=False).hexdigest())


_ADD: Final = """
local function add(log, head, s, node, count, body)
  s = string.format('%.0f', s + count)
  local id = redis.call('XADD', log, '*', 's', s, 'w', node, 'b', body)
  redis.call('HSET', head, 's', s, 'i', id)
  redis.call('PUBLISH', log, 'E' .. id .. ' ' .. s .. ' ' .. node .. ' ' .. body)
  return id
end
"""

APPEND: Final = _script(
    _ADD
    + """
local head = redis.call('HMGET', KEYS[2], 'e', 's', 'n:' .. ARGV[2])
if head[1] ~= ARGV[1] then return redis.error_reply('EPOCH the log of this space is another one now') end
if not head[3] then return redis.error_reply('FENCED this node was declared dead') end
return add(KEYS[1], KEYS[2], head[2], ARGV[2], ARGV[3], ARGV[4])
"""
)
"""log, head; epoch, node, count, body: append a batch and announce it."""

GONE: Final = _script(
    _ADD
    + """
local head = redis.call('HMGET', KEYS[2], 'e', 's')
if head[1] ~= ARGV[1] or redis.call('HDEL', KEYS[2], 'n:' .. ARGV[2]) == 0 then return 0 end
add(KEYS[1], KEYS[2], head[2], '-', 1, ARGV[3])
return 1
"""
)
"""log, head; epoch, node, body: a node may no longer append, and the log says that it left; once."""

ENTER: Final = _script(
    """
redis.call('HSETNX', KEYS[2], 'e', ARGV[1])
redis.call('HSETNX', KEYS[2], 's', 0)
redis.call('HSETNX', KEYS[2], 'i', '0-0')
redis.call('HSET', KEYS[2], 'n:' .. ARGV[2], 1)
local ghosts = {}
for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
  if string.sub(field, 1, 2) == 'n:' then
    local name = string.sub(field, 3)
    if name ~= ARGV[2] and not redis.call('ZSCORE', KEYS[3], name) then table.insert(ghosts, name) end
  end
end
local head = redis.call('HMGET', KEYS[2], 'e', 's', 'i')
return {head[1], head[2], head[3], ghosts}
"""
)
"""log, head, nodes; epoch of a new log, node: this node may append; names of others that may and hold no lease."""

LEASE: Final = _script(
    """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 600000)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
local expired = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. now)
local living = redis.call('ZRANGEBYSCORE', KEYS[1], now, '+inf')
return {string.format('%.0f', now), expired, living}
"""
)
"""nodes; node, milliseconds: renew a lease; the time, the nodes whose lease is over, and those that hold one."""

SNAPSHOT: Final = _script(
    """
if redis.call('HGET', KEYS[2], 'e') ~= ARGV[1] then return 0 end
local last = redis.call('HMGET', KEYS[3], 'new', 'new:s', 'new:i')
if last[1] and tonumber(last[2]) >= tonumber(ARGV[2]) then return 0 end
if last[1] then
  redis.call('HSET', KEYS[3], 'old', last[1], 'old:s', last[2], 'old:i', last[3])
  redis.call('XTRIM', KEYS[1], 'MINID', last[3])
end
redis.call('HSET', KEYS[3], 'new', ARGV[4], 'new:s', ARGV[2], 'new:i', ARGV[3])
return 1
"""
)
"""log, head, snapshots; epoch, number, id, state: keep the last two, and the entries after the older one."""

SCRIPTS: Final = (APPEND, GONE, ENTER, LEASE, SNAPSHOT)
