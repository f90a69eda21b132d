// Loaded before an example server that has a fixed port: it gets the one of PORT.
const { Server } = require('node:net');
const listen = Server.prototype.listen;
Server.prototype.listen = function (port, ...rest) {
  return listen.call(this, typeof port === 'number' ? Number(process.env.PORT) : port, ...rest);
};
