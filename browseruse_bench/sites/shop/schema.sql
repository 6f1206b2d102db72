CREATE TABLE categories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL
);
CREATE TABLE products (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    brand TEXT NOT NULL,
    category_id INTEGER NOT NULL REFERENCES categories(id),
    kind TEXT NOT NULL,
    price_cents INTEGER NOT NULL CHECK (price_cents > 0),
    stock INTEGER NOT NULL CHECK (stock >= 0),
    colour TEXT NOT NULL,
    weight_g INTEGER NOT NULL,
    size TEXT NOT NULL,
    rating REAL NOT NULL,
    n_reviews INTEGER NOT NULL,
    description TEXT NOT NULL,
    words TEXT NOT NULL
);
CREATE TABLE product_specs (
    product_id INTEGER NOT NULL REFERENCES products(id),
    position INTEGER NOT NULL,
    label TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (product_id, position)
);
CREATE TABLE reviews (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    product_id INTEGER NOT NULL REFERENCES products(id),
    author TEXT NOT NULL,
    stars INTEGER NOT NULL CHECK (stars BETWEEN 1 AND 5),
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    written_on TEXT NOT NULL
);
CREATE INDEX reviews_of_product ON reviews(product_id);
CREATE TABLE coupons (
    code TEXT PRIMARY KEY,
    percent INTEGER NOT NULL,
    category_id INTEGER REFERENCES categories(id),
    minimum_cents INTEGER NOT NULL,
    valid_until TEXT NOT NULL,
    description TEXT NOT NULL
);
CREATE TABLE customers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    email TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    password TEXT NOT NULL
);
CREATE TABLE addresses (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    customer_id INTEGER NOT NULL REFERENCES customers(id),
    label TEXT NOT NULL,
    recipient TEXT NOT NULL,
    street TEXT NOT NULL,
    postcode TEXT NOT NULL,
    city TEXT NOT NULL,
    is_default INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    token TEXT NOT NULL UNIQUE,
    customer_id INTEGER REFERENCES customers(id),
    cart_id INTEGER NOT NULL REFERENCES carts(id)
);
CREATE TABLE carts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    customer_id INTEGER UNIQUE REFERENCES customers(id),
    coupon_code TEXT REFERENCES coupons(code),
    address_id INTEGER REFERENCES addresses(id) ON DELETE SET NULL,
    delivery TEXT,
    gift_wrap INTEGER NOT NULL DEFAULT 0,
    gift_note TEXT NOT NULL DEFAULT ''
);
CREATE TABLE cart_lines (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    cart_id INTEGER NOT NULL REFERENCES carts(id) ON DELETE CASCADE,
    product_id INTEGER NOT NULL REFERENCES products(id),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    UNIQUE (cart_id, product_id)
);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    number TEXT NOT NULL UNIQUE,
    customer_id INTEGER NOT NULL REFERENCES customers(id),
    placed_on TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('processing', 'shipped', 'delivered', 'cancelled')),
    recipient TEXT NOT NULL,
    street TEXT NOT NULL,
    postcode TEXT NOT NULL,
    city TEXT NOT NULL,
    delivery TEXT NOT NULL,
    gift_wrap INTEGER NOT NULL,
    gift_note TEXT NOT NULL,
    coupon_code TEXT,
    goods_cents INTEGER NOT NULL,
    discount_cents INTEGER NOT NULL,
    delivery_cents INTEGER NOT NULL,
    wrap_cents INTEGER NOT NULL,
    total_cents INTEGER NOT NULL
);
CREATE TABLE order_lines (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    order_id INTEGER NOT NULL REFERENCES orders(id),
    product_id INTEGER NOT NULL REFERENCES products(id),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    unit_cents INTEGER NOT NULL
);
CREATE TABLE returns (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    order_line_id INTEGER NOT NULL REFERENCES order_lines(id),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    reason TEXT NOT NULL,
    resolution TEXT NOT NULL,
    requested_on TEXT NOT NULL
);
CREATE TABLE wishlist_items (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    customer_id INTEGER NOT NULL REFERENCES customers(id),
    product_id INTEGER NOT NULL REFERENCES products(id),
    UNIQUE (customer_id, product_id)
);
CREATE TABLE newsletter (
    email TEXT PRIMARY KEY,
    subscribed_on TEXT NOT NULL
);
